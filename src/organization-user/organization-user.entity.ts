import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A customer that belongs to a user of an organization. The row of the customer whom the user's tokens are for has
 * `userHash`. The other rows are linked customers, which browsers of the user had before.
 *
 * The primary key ensures that a customer belongs to at most one user. The unique index ensures that a user has one
 * customer.
 */
@Entity('organization_user')
@Index('organization_user_of_organization', ['organizationId', 'userHash'], { unique: true })
export class OrganizationUser {
  @PrimaryColumn('varchar', { name: 'entity_id', length: 36 })
  entityId!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  /** SHA-256 of the organization and its id of the user; `null` in the row of a linked customer. */
  @Column('varchar', { name: 'user_hash', length: 64, nullable: true })
  userHash!: string | null;

  /** The customer whom the user's tokens are for. In the row of this customer it equals `entityId`. */
  @Index('organization_user_customer_id')
  @Column('varchar', { name: 'customer_id', length: 36 })
  customerId!: string;

  /** The attempt that inserted the row, so that it recognizes its row if it runs again. */
  @Column('varchar', { name: 'linked_by', length: 36 })
  linkedBy!: string;

  @Column('datetime', { name: 'linked_at', precision: 3 })
  linkedAt!: Date;
}
