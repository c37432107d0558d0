import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/expires.js';

/**
 * What a revocation applies to: one token, a refresh family, all tokens of a customer or agent, or those of a client.
 */
export type RevocationKind = 'jti' | 'family' | 'subject' | 'client';

/** An entry of the denylist. The row is retained until the last token that it could end has expired. */
@Expires()
@Entity('revocation')
export class Revocation {
  @PrimaryColumn('varchar', { length: 16 })
  kind: RevocationKind;

  @PrimaryColumn('varchar', { length: 255 })
  value: string;

  /** The row revokes tokens that were issued up to this time. */
  @Column('datetime', { name: 'issued_before', precision: 3 })
  issuedBefore: Date;

  @Index('revocation_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt: Date;

  /**
   * Equal to `issuedBefore` if the row was written together with a raised generation. Only processes of release 1 need
   * such a row. If a process of release 1 changes the row, the two values differ, and every process applies the row.
   */
  @Column('datetime', { name: 'generation_raised_at', precision: 3, nullable: true })
  generationRaisedAt: Date | null;
}
