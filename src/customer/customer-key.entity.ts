import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { CustomerEntity } from './customer.entity.js';

/** An organization's own id of a user: an external id, or the `sub` of a sign-in. It leads to one customer. */
@Entity('customer_key')
export class CustomerKey {
  /** SHA-256 of the organization and its id of the user. */
  @PrimaryColumn('varchar', { length: 64 })
  hash!: string;

  @Index('customer_key_entity_id')
  @Column('varchar', { name: 'entity_id', length: 36 })
  entityId!: string;

  @ManyToOne(() => CustomerEntity, { createForeignKeyConstraints: false })
  @JoinColumn({ name: 'entity_id' })
  readonly customer?: never;
}
