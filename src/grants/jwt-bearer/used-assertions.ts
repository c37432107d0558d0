import { Injectable } from '@nestjs/common';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import {
  Database,
  Expires,
  insertIgnoreStatement,
  OAuthError,
  selectStatement,
  sha256,
  writeStatement,
} from '../../public/grant.js';
import type { ProvenUser } from './assertions.js';

/** An assertion that was used. The row expires 30 s after the assertion. */
@Expires()
@Entity('used_assertion')
export class UsedAssertion {
  /** SHA-256 of the organization, and of the issuer and the `jti` of the assertion. */
  @PrimaryColumn('varchar', { length: 64 })
  hash!: string;

  /** The attempt that used the assertion. It is also the `jti` of the issued token. */
  @Column('varchar', { name: 'used_by', length: 36 })
  usedBy!: string;

  @Index('used_assertion_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}

/** The clock of another process may be behind. */
const RETENTION_MARGIN_SECONDS = 30;

const INSERT = insertIgnoreStatement({ into: UsedAssertion, columns: ['hash', 'used_by', 'expires_at'] });

const FIND_OWN = selectStatement<[hash: string, attempt: string], unknown>({
  columns: ['1'],
  from: 'used_assertion WHERE hash = ? AND used_by = ?',
  batch: true,
});

const DELETE_OWN = writeStatement<[hash: string, attempt: string]>(
  'DELETE FROM used_assertion WHERE hash = ? AND used_by = ?',
);

/** Ensures that an assertion is used only once (RFC 7523 §5.2). */
@Injectable()
export class UsedAssertions {
  constructor(private readonly database: Database) {}

  /**
   * Two organizations may have sign-in systems with the same issuer text, and one must not use up the assertions of the
   * other. The primary key lets one of several parallel INSERTs succeed. A request whose INSERT is repeated after a
   * lost response recognizes its row by the `attempt`.
   *
   * @throws OAuthError `invalid_grant` if another attempt has used the assertion
   */
  async use(user: ProvenUser, organizationId: string, attempt: string): Promise<void> {
    const hash = hashOf(user, organizationId);
    const expiresAt = new Date((user.expires + RETENTION_MARGIN_SECONDS) * 1000);
    if ((await this.database.executeIdempotent(INSERT, [hash, attempt, expiresAt])) > 0) return;
    if ((await this.database.select(FIND_OWN, [hash, attempt])).length === 0)
      throw OAuthError.invalidGrant('assertion: used before');
  }

  /** Makes an assertion usable again after an attempt that gave nothing. */
  async giveBack(user: ProvenUser, organizationId: string, attempt: string): Promise<void> {
    await this.database.executeIdempotent(DELETE_OWN, [hashOf(user, organizationId), attempt]);
  }
}

function hashOf({ issuer, jti }: ProvenUser, organizationId: string): string {
  return sha256(JSON.stringify([organizationId, issuer, jti]));
}
