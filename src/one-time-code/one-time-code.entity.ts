import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/entity-checks.js';

/** An authorization code of the authorization page. The row has only the hash of the code. */
@Expires()
@Entity('one_time_code')
export class OneTimeCode {
  /** SHA-256 of the code. */
  @PrimaryColumn('varchar', { length: 64 })
  hash!: string;

  /** The client that may redeem the code. */
  @Column('varchar', { name: 'client_id', length: 128 })
  clientId!: string;

  /** The agent that granted access. */
  @Column('varchar', { name: 'agent_id', length: 36 })
  agentId!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  /** The granted scopes, separated by spaces. */
  @Column('varchar', { length: 1000 })
  scope!: string;

  /** The redirect URI of the authorization request (RFC 6749 §4.1.3). */
  @Column('varchar', { name: 'redirect_uri', length: 2000 })
  redirectUri!: string;

  /** PKCE, S256 (RFC 7636). */
  @Column('varchar', { name: 'code_challenge', length: 43, nullable: true })
  codeChallenge!: string | null;

  /** The generation of the agent. */
  @Column('integer')
  generation!: number;

  /** When access was granted. */
  @Column('datetime', { name: 'issued_at', precision: 3 })
  issuedAt!: Date;

  @Index('one_time_code_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;

  /** The time of the redemption, by the clock of the database. */
  @Column('datetime', { name: 'consumed_at', precision: 3, nullable: true })
  consumedAt!: Date | null;

  /** The id of the attempt that redeemed the code, which is the refresh family that it gave. */
  @Column('varchar', { name: 'consumed_by', length: 36, nullable: true })
  consumedBy!: string | null;

  /** An HMAC of the network that the redemption came from (`CallerNetworks`). */
  @Column('varchar', { name: 'consumed_network', length: 64, nullable: true })
  consumedNetwork!: string | null;
}
