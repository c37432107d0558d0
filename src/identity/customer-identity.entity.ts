import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A customer, in one organization and group.
 *
 * A *browser* owns one identity per organization and group. The row of its first identity is the browser's own too: its
 * `browserId` is its own `entityId`, and it alone has `secretHash` and `lastSeenDay`. So a new customer is one INSERT.
 * Identities that agents make have no browser.
 */
@Entity('customer_identity')
@Index('customer_identity_of_browser', ['browserId', 'organizationId', 'groupId'], { unique: true })
export class CustomerIdentity {
  /** UUIDv7; what callers know the customer by. */
  @PrimaryColumn('varchar', { name: 'entity_id', length: 36 })
  entityId: string;

  /** `entityId` of the browser's first identity; `null` for a customer of a backend. */
  @Column('varchar', { name: 'browser_id', length: 36, nullable: true })
  browserId: string | null;

  /** `null` when the identity was erased: then only its id is left, and its browser. */
  @Column('varchar', { name: 'organization_id', length: 36, nullable: true })
  organizationId: string | null;

  /** Empty where the identity belongs to no group; `null` when it was erased. */
  @Column('varchar', { name: 'group_id', length: 64, nullable: true })
  groupId: string | null;

  /** SHA-256 of the browser's secret. */
  @Column('varchar', { name: 'secret_hash', length: 64, nullable: true })
  secretHash: string | null;

  /** The last day the browser came, in days since 1970 (UTC). */
  @Column('integer', { name: 'last_seen_day', nullable: true })
  lastSeenDay: number | null;

  @Column('datetime', { name: 'created_at', precision: 3 })
  createdAt: Date;

  /** Tokens, codes and refresh families that carry a lower generation have ended. `null` is 0. It never decreases. */
  @Column('integer', { nullable: true })
  generation: number | null;
}
