import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../../public/grant.js';

/** An assertion that was used; kept for as long as it could come again. */
@Expires()
@Entity('used_assertion')
export class UsedAssertion {
  /** SHA-256 of its issuer and `jti`. */
  @PrimaryColumn('varchar', { length: 64 })
  hash: string;

  /** The attempt that used it, which is the `jti` of the token it gave. */
  @Column('varchar', { name: 'used_by', length: 36 })
  usedBy: string;

  @Index('used_assertion_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt: Date;
}
