import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/expires.js';

/** Assigns a refresh token to its chain, also after the token became invalid. */
@Expires()
@Entity('refresh_token')
export class RefreshToken {
  /** SHA-256 of the token. */
  @PrimaryColumn('varchar', { length: 64 })
  hash: string;

  @Index('refresh_token_family_id')
  @Column('varchar', { name: 'family_id', length: 36 })
  familyId: string;

  @Index('refresh_token_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt: Date;

  /** When a retry with the previous token replaced this token, which was never used. */
  @Column('datetime', { name: 'replaced_at', precision: 3, nullable: true })
  replacedAt: Date | null;
}
