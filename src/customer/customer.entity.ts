import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { CustomerCreator } from './customer.js';

/** A customer, in one organization and group. */
@Entity('customer')
@Index('customer_of_organization', ['organizationId', 'entityId'])
export class CustomerEntity {
  /** A UUIDv7, by which callers identify the customer. */
  @PrimaryColumn('varchar', { name: 'entity_id', length: 36 })
  entityId!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  /** Empty if the customer belongs to no group. */
  @Column('varchar', { name: 'group_id', length: 64 })
  groupId!: string;

  @Column('varchar', { length: 16 })
  creator!: CustomerCreator;

  /**
   * Milliseconds since 1970: when the customer was created, or when all its tokens ended last. Tokens with another
   * generation have ended. Each rise is at least the present time, so that an id that comes back has a later
   * generation.
   */
  @Column('bigint')
  generation!: number;

  /** Rises in each transaction that begins or ends sessions of the customer, so that these follow each other. */
  @Column('integer')
  version!: number;

  /** Whether the customer is a user of the organization: it has an external id, or a user signed in. */
  @Column('boolean', { name: 'has_user' })
  hasUser!: boolean;

  /** The customer of the user to whom this visitor's customer was linked, once and for all; empty after its erasure. */
  @Index('customer_linked_to')
  @Column('varchar', { name: 'linked_to', length: 36, nullable: true })
  linkedTo!: string | null;

  /** The last day on which the customer was used without a session, or lost its sessions, in days since 1970 (UTC). */
  @Column('integer', { name: 'seen_day' })
  seenDay!: number;

  /** When the erasure began. The row goes when the extensions have deleted their data too. */
  @Column('datetime', { name: 'erased_at', precision: 3, nullable: true })
  erasedAt!: Date | null;

  @Column('datetime', { name: 'created_at', precision: 3 })
  createdAt!: Date;
}
