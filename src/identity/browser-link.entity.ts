import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A browser that the service has given identity cookies. */
@Entity('browser')
export class KnownBrowser {
  /** A UUIDv7. The cookie with the secret begins with it. */
  @PrimaryColumn('varchar', { name: 'browser_id', length: 36 })
  browserId!: string;

  /** SHA-256 of the secret; empty if the secret was removed. No secret has the empty hash. */
  @Column('varchar', { name: 'secret_hash', length: 64 })
  secretHash!: string;

  /** Rises in each transaction that decides by the links of the browser. */
  @Column('integer')
  version!: number;
}

/** How a link began: the browser created the customer, a user signed in, or an identity was transferred to the browser. */
export type LinkOrigin = 'own' | 'sign-in' | 'transfer';

/**
 * Leads a browser to a customer, in the customer's organization and group. A link that no longer leads to its customer
 * has no organization. Because its `entityId` may still be in the browser's cookie, the row stays until the browser is
 * purged.
 */
@Entity('browser_customer')
@Index('browser_customer_of_scope', ['browserId', 'organizationId', 'groupId'], { unique: true })
@Index('browser_customer_of_customer', ['entityId', 'organizationId', 'origin', 'beganIn'])
export class BrowserLink {
  @PrimaryColumn('varchar', { name: 'browser_id', length: 36 })
  browserId!: string;

  @PrimaryColumn('varchar', { name: 'entity_id', length: 36 })
  entityId!: string;

  @Column('varchar', { name: 'organization_id', length: 36, nullable: true })
  organizationId!: string | null;

  /** Empty if the customer belongs to no group. */
  @Column('varchar', { name: 'group_id', length: 64, nullable: true })
  groupId!: string | null;

  @Column('varchar', { length: 16 })
  origin!: LinkOrigin;

  /** The browser in which the link began. Copies of the link in later browsers have the same value. */
  @Column('varchar', { name: 'began_in', length: 36 })
  beganIn!: string;

  /** Of the customer when the link began, or of the transfer. Copies have the same value. */
  @Column('integer')
  generation!: number;

  /** The last day on which the browser used the link, in days since 1970 (UTC). */
  @Column('integer', { name: 'seen_day' })
  seenDay!: number;

  /**
   * The last day of a sign-in, or of a link from a transfer to the customer of a user: `sign_in_days` after the last
   * sign-in or the redemption. Copies have the same value. `null` for other links.
   */
  @Column('integer', { name: 'signed_in_until', nullable: true })
  signedInUntil!: number | null;

  /** The first token of the chain of transfers; `null` if an agent transferred the customer, or without a transfer. */
  @Column('varchar', { length: 128, nullable: true })
  root!: string | null;

  /** A `LinkLineage` as JSON: the lineage of the tokens that a link from a transfer gives. */
  @Column('text', { nullable: true })
  lineage!: string | null;

  /** The agent of this service in `lineage`. The link ends when the agent is deleted or gets a higher generation. */
  @Column('varchar', { name: 'agent_id', length: 36, nullable: true })
  agentId!: string | null;

  @Column('integer', { name: 'agent_generation', nullable: true })
  agentGeneration!: number | null;
}

/**
 * A token or refresh family with which a link from a transfer ends (protocol §3.10). With these rows the purge finds
 * the links that the revocation of an ancestor has ended, before it deletes this revocation.
 */
@Entity('link_ancestor')
export class LinkAncestor {
  @PrimaryColumn('varchar', { name: 'entity_id', length: 36 })
  entityId!: string;

  @PrimaryColumn('varchar', { name: 'browser_id', length: 36 })
  browserId!: string;

  /** A `jti`, the id of a refresh family, or the id of the redemption that gave the link. */
  @Index('link_ancestor_ancestor_id')
  @PrimaryColumn('varchar', { name: 'ancestor_id', length: 128 })
  ancestorId!: string;
}
