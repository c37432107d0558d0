import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/entity-checks.js';

/** A transfer token or an authorization code. The row has only the hash of the code. */
@Expires()
@Entity('one_time_code')
export class OneTimeCode {
  /** SHA-256 of the code. */
  @PrimaryColumn('varchar', { length: 64 })
  hash!: string;

  @Column('varchar', { length: 16 })
  kind!: CodeKind;

  /** The client that may redeem the code. */
  @Column('varchar', { name: 'client_id', length: 128 })
  clientId!: string;

  /** The customer or agent that the token is for. */
  @Index('one_time_code_subject')
  @Column('varchar', { length: 36 })
  subject!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  /** The scopes that an agent granted; `null` for a customer. */
  @Column('varchar', { length: 1000, nullable: true })
  scope!: string | null;

  /** The redirect URI of an authorization code (RFC 6749 §4.1.3); `null` for a transfer token. */
  @Column('varchar', { name: 'redirect_uri', length: 2000, nullable: true })
  redirectUri!: string | null;

  /** PKCE, S256 (RFC 7636). */
  @Column('varchar', { name: 'code_challenge', length: 43, nullable: true })
  codeChallenge!: string | null;

  /** A `StoredOrigin` (stored-codes.ts) as JSON: the bearer that created the code, and the lineage of the token. */
  @Column('text', { name: 'made_with' })
  madeWith!: string;

  @Index('one_time_code_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;

  /** The time of the redemption, by the clock of the database. */
  @Column('datetime', { name: 'consumed_at', precision: 3, nullable: true })
  consumedAt!: Date | null;

  /** The id of the attempt that redeemed the code: the `jti` of the token, or its beginning (protocol §3.6). */
  @Column('varchar', { name: 'consumed_by', length: 36, nullable: true })
  consumedBy!: string | null;

  /** An HMAC of the network that the redemption came from (`CallerNetworks`). */
  @Column('varchar', { name: 'consumed_network', length: 64, nullable: true })
  consumedNetwork!: string | null;
}

export type CodeKind = 'transfer' | 'authorization';
