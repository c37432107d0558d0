import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../../platform/database/entity-checks.js';

/** The failed sign-ins of one account, network or both in one window. */
@Expires()
@Entity('sign_in_failure')
export class SignInFailure {
  /** An HMAC, because a plain hash of an email or an address can be found by trying. */
  @PrimaryColumn('varchar', { length: 43 })
  hash!: string;

  @Column('integer')
  failures!: number;

  @Index('sign_in_failure_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}
