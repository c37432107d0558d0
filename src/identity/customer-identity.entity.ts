import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A customer, in one organization and group.
 *
 * A *browser* owns one identity per organization and group. The row of its first identity is also the row of the
 * browser. In this row `browserId` equals `entityId`, and only this row has `secretHash` and `lastSeenDay`. So a new
 * customer costs one INSERT. Identities that agents create have no browser.
 *
 * A browser can also lead to customers that its own rows do not contain (`BrowserLink`). The row of a browser that was
 * created for links has no organization. In the row of a customer that a browser created for a link, `browserId` equals
 * `entityId`, and the row has no secret.
 */
@Entity('customer_identity')
@Index('customer_identity_of_browser', ['browserId', 'organizationId', 'groupId'], { unique: true })
export class CustomerIdentity {
  /** A UUIDv7, by which callers identify the customer. */
  @PrimaryColumn('varchar', { name: 'entity_id', length: 36 })
  entityId: string;

  /** The `entityId` of the browser's first identity; `null` for a customer that an agent created. */
  @Column('varchar', { name: 'browser_id', length: 36, nullable: true })
  browserId: string | null;

  /** `null` if the identity was erased. An erased row retains only `entityId` and the browser's columns. */
  @Column('varchar', { name: 'organization_id', length: 36, nullable: true })
  organizationId: string | null;

  /** Empty if the identity belongs to no group; `null` if the identity was erased. */
  @Column('varchar', { name: 'group_id', length: 64, nullable: true })
  groupId: string | null;

  /** SHA-256 of the browser's secret. */
  @Column('varchar', { name: 'secret_hash', length: 64, nullable: true })
  secretHash: string | null;

  /** The last day on which the browser was seen, in days since 1970 (UTC). */
  @Column('integer', { name: 'last_seen_day', nullable: true })
  lastSeenDay: number | null;

  @Column('datetime', { name: 'created_at', precision: 3 })
  createdAt: Date;

  /** Tokens, codes and refresh families that carry a lower generation have ended. `null` is 0. It never decreases. */
  @Column('integer', { nullable: true })
  generation: number | null;

  /**
   * Links that carry a lower generation lead to no customer. `null` is 0, which the browser that created the customer
   * carries. It never decreases.
   */
  @Column('integer', { name: 'link_generation', nullable: true })
  linkGeneration: number | null;

  /** When the browser that created the customer was forgotten, so that it no longer leads to the customer. */
  @Column('datetime', { name: 'unlinked_at', precision: 3, nullable: true })
  unlinkedAt: Date | null;

  /**
   * The last day on which the browser was seen in the organization and group of this row, in days since 1970 (UTC).
   * `null` in rows of release 1, which has only `lastSeenDay`.
   */
  @Column('integer', { name: 'scope_seen_day', nullable: true })
  scopeSeenDay: number | null;

  /**
   * The last day on which the customer got a token in another way than by the browser of this row, in days since 1970
   * (UTC): by a link, a transfer token, a refresh token or an agent. `null` if there was none, or if the browser of
   * this row had got a token on that day already.
   */
  @Column('integer', { name: 'last_token_day', nullable: true })
  lastTokenDay: number | null;
}
