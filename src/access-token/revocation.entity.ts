import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/entity-checks.js';
import type { Audience } from './token-lineage.js';

/**
 * What a revocation applies to: one token, a refresh family, or the tokens of a client. A row of the kind `generation`
 * ends nothing in this service: it repeats a raised generation of a customer or agent for the feed (protocol §7.6).
 */
export type RevocationKind = 'jti' | 'family' | 'client' | 'generation';

/**
 * Whose tokens a revocation can end. A row for `agent-api` also concerns customer tokens, because these may descend
 * from agents' tokens. `none`: no token, because the row ends a sign-in session. `null`: both kinds.
 */
export type RevocationAudience = Audience | 'none' | null;

/** An entry of the denylist. The row is retained until the last token that it could end has expired. */
@Expires()
@Entity('revocation')
export class Revocation {
  @PrimaryColumn('varchar', { length: 16 })
  kind!: RevocationKind;

  @PrimaryColumn('varchar', { length: 255 })
  value!: string;

  /** The row revokes tokens that were issued up to this time. */
  @Column('datetime', { name: 'issued_before', precision: 3 })
  issuedBefore!: Date;

  @Index('revocation_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;

  /** The position in the feed; `null` before the first publication. Later positions are higher (protocol §7.6). */
  @Index('revocation_position')
  @Column('bigint', { nullable: true })
  position!: number | null;

  /**
   * The `expires_at` in the feed; `null` while the row, or its last change, waits for a position. If the limit of
   * revocations was reached, a time without a position keeps the row out of the feed.
   */
  @Index('revocation_published_until')
  @Column('datetime', { name: 'published_until', precision: 3, nullable: true })
  publishedUntil!: Date | null;

  /** The generation of the subject; only in rows of the kind `generation`. */
  @Column('integer', { nullable: true })
  generation!: number | null;

  @Column('varchar', { length: 16, nullable: true })
  audience!: RevocationAudience;
}
