import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/entity-checks.js';

/**
 * A chain of refresh tokens, of which one at a time is current. Each token is `F.R`. F names the family in all of its
 * tokens. R is a secret, and the secret of a successor is derived from that of its predecessor and `successorNonce`.
 */
@Expires()
@Entity('refresh_family')
export class RefreshFamily {
  /** The `jti` of every access token of the chain begins with this id. */
  @PrimaryColumn('varchar', { length: 36 })
  id!: string;

  /** SHA-256 of F. */
  @Index('refresh_family_family_hash', { unique: true })
  @Column('varchar', { name: 'family_hash', length: 64 })
  familyHash!: string;

  @Column('varchar', { name: 'client_id', length: 128 })
  clientId!: string;

  /** The agent that granted access, or the agent of this service that transferred the customer. */
  @Column('varchar', { name: 'agent_id', length: 36, nullable: true })
  agentId!: string | null;

  /** The generation of the agent at that time. */
  @Column('integer', { name: 'agent_generation', nullable: true })
  agentGeneration!: number | null;

  /** The customer that stays on a device; `null` in a family of an agent. */
  @Index('refresh_family_customer_id')
  @Column('varchar', { name: 'customer_id', length: 36, nullable: true })
  customerId!: string | null;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  @Column('varchar', { length: 1000 })
  scope!: string;

  /** A `TokenLineage` without `gen` as JSON: the lineage of the family's access tokens. */
  @Column('text')
  lineage!: string;

  /** The first token of the chain of transfers; `null` if an agent transferred the customer, or without a transfer. */
  @Column('varchar', { length: 128, nullable: true })
  root!: string | null;

  /** The generation of the agent, or of the customer's transfer. */
  @Column('integer')
  generation!: number;

  /** When access was granted. A later revocation of the client ends the chain. */
  @Column('datetime', { name: 'begun_at', precision: 3 })
  begunAt!: Date;

  /** SHA-256 of R of the current token. */
  @Column('varchar', { name: 'current_hash', length: 64 })
  currentHash!: string;

  /** SHA-256 of R of the token that the current token replaced. */
  @Column('varchar', { name: 'previous_hash', length: 64, nullable: true })
  previousHash!: string | null;

  /** With it and the previous token, a retry computes the current token. */
  @Column('varchar', { name: 'successor_nonce', length: 43, nullable: true })
  successorNonce!: string | null;

  /** When the previous token was used first, by the clock of the database. A retry leaves it unchanged. */
  @Column('datetime', { name: 'rotated_at', precision: 3 })
  rotatedAt!: Date;

  /** An HMAC of the network of the first use of the previous token (`CallerNetworks`). */
  @Column('varchar', { name: 'rotated_network', length: 64, nullable: true })
  rotatedNetwork!: string | null;

  /** When the first rotation was that is counted, by the clock of the database. The count begins again after an hour. */
  @Column('datetime', { name: 'counted_since', precision: 3 })
  countedSince!: Date;

  /** The number of rotations since then. */
  @Column('integer')
  rotations!: number;

  @Column('datetime', { name: 'ended_at', precision: 3, nullable: true })
  endedAt!: Date | null;

  @Index('refresh_family_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}

/**
 * A token or refresh family with which a customer's family ends (protocol §3.10). The purge deletes the family before
 * it deletes the revocation of the ancestor. Requests read `RefreshFamily.lineage` instead.
 */
@Entity('refresh_family_ancestor')
export class RefreshFamilyAncestor {
  @PrimaryColumn('varchar', { name: 'family_id', length: 36 })
  familyId!: string;

  /** A `jti` or the id of a refresh family. */
  @Index('refresh_family_ancestor_ancestor_id')
  @PrimaryColumn('varchar', { name: 'ancestor_id', length: 128 })
  ancestorId!: string;
}
