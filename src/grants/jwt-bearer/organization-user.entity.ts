import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A customer that belongs to a user of an organization: the one that the user's tokens are for, which has `userHash`, or
 * one that a browser of the user was before, linked to it. That a customer belongs to one user at most is its key, that a
 * user has one customer the other: so each change is one INSERT.
 */
@Entity('organization_user')
@Index('organization_user_of_organization', ['organizationId', 'userHash'], { unique: true })
export class OrganizationUser {
  @PrimaryColumn('varchar', { name: 'entity_id', length: 36 })
  entityId: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId: string;

  /** SHA-256 of organization and user id; `null` of a linked one. */
  @Column('varchar', { name: 'user_hash', length: 64, nullable: true })
  userHash: string | null;

  /** The customer that the user's tokens are for: of that one itself. */
  @Index('organization_user_customer_id')
  @Column('varchar', { name: 'customer_id', length: 36 })
  customerId: string;

  /** The attempt that inserted the row. */
  @Column('varchar', { name: 'linked_by', length: 36 })
  linkedBy: string;

  @Column('datetime', { name: 'linked_at', precision: 3 })
  linkedAt: Date;

  /** When the customer was seen to be there; `null` while it is made, or when whoever made it has died. */
  @Column('datetime', { name: 'settled_at', precision: 3, nullable: true })
  settledAt: Date | null;
}
