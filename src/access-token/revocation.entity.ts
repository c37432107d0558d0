import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/expires.js';

/**
 * What a revocation names: one token, all tokens of a chain of refreshes, all of a customer or agent, all of a client.
 */
export type RevocationKind = 'jti' | 'family' | 'subject' | 'client';

/** An entry of the denylist. It is kept until the last token that it could end has expired. */
@Expires()
@Entity('revocation')
export class Revocation {
  @PrimaryColumn('varchar', { length: 16 })
  kind: RevocationKind;

  @PrimaryColumn('varchar', { length: 255 })
  value: string;

  /** Tokens issued until then are revoked. */
  @Column('datetime', { name: 'issued_before', precision: 3 })
  issuedBefore: Date;

  @Index('revocation_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt: Date;

  /**
   * Equal to `issuedBefore` where the row was written together with a raised generation. Such a row only tells processes
   * of release 1 what the generation tells this one. A process of release 1 that changes the row makes the two differ.
   */
  @Column('datetime', { name: 'generation_raised_at', precision: 3, nullable: true })
  generationRaisedAt: Date | null;
}
