import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/entity-checks.js';

/**
 * A chain of refresh tokens of an agent, of which one at a time is current. Each token is `F.R`. F names the family in all of its
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

  /** The agent that granted access. */
  @Column('varchar', { name: 'agent_id', length: 36 })
  agentId!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  @Column('varchar', { length: 1000 })
  scope!: string;

  /** The generation of the agent when it granted access. */
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
