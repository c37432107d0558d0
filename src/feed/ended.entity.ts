import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/entity-checks.js';

/**
 * What has ended: tokens of a session up to an epoch, with what an agent obtained with them; tokens of a customer up to
 * a generation; one token of a customer; or the tokens of a client or an organization.
 */
export type EndedKind = 'session' | 'subject' | 'token' | 'client' | 'organization';

/** Whose tokens an entry can end. `null`: those of agents, and the customer tokens that agents obtained. */
export type EndedAudience = 'customer-api' | null;

/**
 * An entry for the verifiers that follow the feed (protocol §7.6). The service itself reads entries of the kind
 * `token`, and those of the kind `session` only for the reason. It knows from the registry in memory which clients and
 * organizations have ended. The row is retained until the last token that it could end has expired.
 */
@Expires()
@Entity('ended')
export class Ended {
  @PrimaryColumn('varchar', { length: 16 })
  kind!: EndedKind;

  @PrimaryColumn('varchar', { length: 255 })
  value!: string;

  /** Tokens with a lower epoch (`session`) or generation (`subject`) have ended; `null` for other kinds. */
  @Column('bigint', { nullable: true })
  number!: number | null;

  /** Why; an `InactiveReason`. */
  @Column('varchar', { length: 32 })
  reason!: string;

  /** Only tokens that were issued up to this time have ended. */
  @Column('datetime', { name: 'issued_before', precision: 3 })
  issuedBefore!: Date;

  @Index('ended_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;

  /** The position in the feed; `null` before the first publication. Later positions are higher (protocol §7.6). */
  @Index('ended_position')
  @Column('bigint', { nullable: true })
  position!: number | null;

  /**
   * The `expires_at` in the feed; `null` while the row, or its last change, waits for a position. If the limit of
   * revocations was reached, a time without a position keeps the row out of the feed.
   */
  @Index('ended_published_until')
  @Column('datetime', { name: 'published_until', precision: 3, nullable: true })
  publishedUntil!: Date | null;

  @Column('varchar', { length: 16, nullable: true })
  audience!: EndedAudience;
}
