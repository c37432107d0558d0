import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { CustomerEntity } from './customer.entity.js';

/**
 * A key that leads to one customer: an organization's own id of a user, which is an external id or the `sub` of a
 * sign-in, or a key of a grant of another team.
 */
@Entity('customer_key')
export class CustomerKey {
  /** Of a user, SHA-256 of the organization and its id; else an HMAC of namespace, organization, group and key. */
  @PrimaryColumn('varchar', { length: 64 })
  hash!: string;

  @Index('customer_key_entity_id')
  @Column('varchar', { name: 'entity_id', length: 36 })
  entityId!: string;

  /** `user`, or what the key of another grant is, such as `phone`. */
  @Column('varchar', { length: 64 })
  namespace!: string;

  @ManyToOne(() => CustomerEntity, { createForeignKeyConstraints: false })
  @JoinColumn({ name: 'entity_id' })
  readonly customer?: never;
}
