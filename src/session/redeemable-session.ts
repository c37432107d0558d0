import { Column } from 'typeorm';

/**
 * What sessions of customers and of agents have in common: a code, which is redeemed once, and refresh tokens, which
 * may follow it. All columns are `null` in other sessions. Each table has unique indexes on `code_hash` and
 * `refresh_id_hash`.
 */
export abstract class RedeemableSession {
  /** SHA-256 of the code, also after its redemption, so that a replay is noticed. */
  @Column('varchar', { name: 'code_hash', length: 64, nullable: true })
  codeHash!: string | null;

  /** PKCE, S256 (RFC 7636). */
  @Column('varchar', { name: 'code_challenge', length: 43, nullable: true })
  codeChallenge!: string | null;

  /** An HMAC of the network that the redemption came from (`CallerNetworks`). */
  @Column('varchar', { name: 'redeemed_network', length: 64, nullable: true })
  redeemedNetwork!: string | null;

  /** The time of the redemption by the clock of the database; of a proof the time of the last one. */
  @Column('datetime', { name: 'redeemed_at', precision: 3, nullable: true })
  redeemedAt!: Date | null;

  /** SHA-256 of F, the part that all refresh tokens of the session have in common. */
  @Column('varchar', { name: 'refresh_id_hash', length: 64, nullable: true })
  refreshIdHash!: string | null;

  /** SHA-256 of R of the current refresh token. */
  @Column('varchar', { name: 'current_hash', length: 64, nullable: true })
  currentHash!: string | null;

  /** SHA-256 of R of the refresh token that the current one replaced. */
  @Column('varchar', { name: 'previous_hash', length: 64, nullable: true })
  previousHash!: string | null;

  /** With it and the previous refresh token, a retry computes the current one. */
  @Column('varchar', { name: 'successor_nonce', length: 43, nullable: true })
  successorNonce!: string | null;
}
