import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/expires.js';

/**
 * A chain of refresh tokens, of which one at a time is current. The table `refresh_token` has the hashes of all tokens
 * of the chain, so that the reuse of an earlier one is detected.
 */
@Expires()
@Entity('refresh_family')
export class RefreshFamily {
  /** The `jti` of every access token of the chain begins with this id. */
  @PrimaryColumn('varchar', { length: 36 })
  id: string;

  @Column('varchar', { name: 'client_id', length: 128 })
  clientId: string;

  /** The agent that granted access; empty in a family of a customer. */
  @Column('varchar', { name: 'agent_id', length: 36 })
  agentId: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId: string;

  @Column('varchar', { length: 1000 })
  scope: string;

  /** SHA-256 of the current token. */
  @Column('varchar', { name: 'current_hash', length: 64 })
  currentHash: string;

  /** SHA-256 of the token that the current token replaced. */
  @Column('varchar', { name: 'previous_hash', length: 64, nullable: true })
  previousHash: string | null;

  /** When access was granted. A later revocation of the client ends the chain. */
  @Column('datetime', { name: 'begun_at', precision: 3 })
  begunAt: Date;

  /** When the previous token was used first, by the clock of the database. A retry leaves it unchanged. */
  @Column('datetime', { name: 'rotated_at', precision: 3 })
  rotatedAt: Date;

  @Column('datetime', { name: 'ended_at', precision: 3, nullable: true })
  endedAt: Date | null;

  @Index('refresh_family_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt: Date;

  /** The generation of the agent or customer when access was granted. `null` is 0. */
  @Column('integer', { nullable: true })
  generation: number | null;

  /** A hash of the network of the first use of the previous token (`callerNetwork`). */
  @Column('varchar', { name: 'rotated_network', length: 64, nullable: true })
  rotatedNetwork: string | null;

  /** The customer that stays on a device; `null` in a family of an agent. */
  @Index('refresh_family_customer_id')
  @Column('varchar', { name: 'customer_id', length: 36, nullable: true })
  customerId: string | null;

  /** A `TokenLineage` without `gen` as JSON: the lineage of a customer's tokens. `null` in a family of an agent. */
  @Column('text', { nullable: true })
  lineage: string | null;
}
