import { Injectable } from '@nestjs/common';
import { Database, insertIgnoreStatement, OAuthError, selectStatement, sha256 } from '../../public/grant.js';
import type { ProvenUser } from './assertions.js';
import { UsedAssertion } from './used-assertion.entity.js';

/** Time for which another process's clock may still find the assertion good. */
const CLOCK_SKEW_SECONDS = 30;

const INSERT = insertIgnoreStatement({ into: UsedAssertion, columns: ['hash', 'used_by', 'expires_at'] });

const FIND_OWN = selectStatement<[hash: string, attempt: string], unknown>({
  columns: ['1'],
  from: 'used_assertion WHERE hash = ? AND used_by = ?',
  batch: true,
});

/** Assertions that were used, of which none is used again (RFC 7523 section 5.2). */
@Injectable()
export class UsedAssertions {
  constructor(private readonly database: Database) {}

  /**
   * Uses an assertion. Of parallel attempts the unique key lets one; its own, sent again after a lost answer, is still its.
   *
   * @throws OAuthError `invalid_grant` when it was used before
   */
  async use({ issuer, jti, expires }: ProvenUser, attempt: string): Promise<void> {
    const hash = sha256(JSON.stringify([issuer, jti]));
    const expiresAt = new Date((expires + CLOCK_SKEW_SECONDS) * 1000);
    if ((await this.database.executeIdempotent(INSERT, [hash, attempt, expiresAt])) > 0) return;
    if ((await this.database.select(FIND_OWN, [hash, attempt])).length === 0)
      throw OAuthError.invalidGrant('assertion: used before');
  }
}
