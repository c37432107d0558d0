import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * Leads a browser to a customer of one organization and group that the browser's own rows do not lead to. A link takes
 * precedence over the browser's own customer (protocol §5.6).
 */
@Entity('browser_link')
export class BrowserLink {
  @PrimaryColumn('varchar', { name: 'browser_id', length: 36 })
  browserId: string;

  @PrimaryColumn('varchar', { name: 'organization_id', length: 36 })
  organizationId: string;

  /** Empty if the customer belongs to no group. */
  @PrimaryColumn('varchar', { name: 'group_id', length: 64 })
  groupId: string;

  @Index('browser_link_entity_id')
  @Column('varchar', { name: 'entity_id', length: 36 })
  entityId: string;

  /** The customer's `linkGeneration`, read before the link was created. */
  @Column('integer')
  generation: number;

  /** The last day on which the browser was seen in this organization and group, in days since 1970 (UTC). */
  @Column('integer', { name: 'scope_seen_day' })
  scopeSeenDay: number;

  /**
   * The attempt that redeemed the transfer token which gave the link. `null` if the link did not come from a transfer.
   */
  @Index('browser_link_redemption')
  @Column('varchar', { length: 36, nullable: true })
  redemption: string | null;

  /** A `LinkLineage` as JSON: the lineage of the tokens that the link gives. */
  @Column('text', { nullable: true })
  lineage: string | null;

  /** The agent in `lineage`, if it has a generation. */
  @Column('varchar', { name: 'agent_id', length: 36, nullable: true })
  agentId: string | null;

  @Column('integer', { name: 'agent_generation', nullable: true })
  agentGeneration: number | null;
}
