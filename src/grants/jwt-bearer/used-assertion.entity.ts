import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../../public/grant.js';

/** An assertion that was used. The row expires 30 s after the assertion. */
@Expires()
@Entity('used_assertion')
export class UsedAssertion {
  /** SHA-256 of the organization, and of the issuer and the `jti` of the assertion. */
  @PrimaryColumn('varchar', { length: 64 })
  hash!: string;

  @Index('used_assertion_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}
