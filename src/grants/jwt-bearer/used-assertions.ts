import { Injectable } from '@nestjs/common';
import { Database, OAuthError, sha256 } from '../../public/grant.js';
import type { ProvenUser } from './assertions.js';

/** Seconds for which another process's clock may still find the assertion good. */
const SKEW = 30;

/** Assertions that were used, of which none is used again (RFC 7523 section 5.2). */
@Injectable()
export class UsedAssertions {
  private readonly insert: string;

  constructor(private readonly database: Database) {
    this.insert = `INSERT ${database.ignore} INTO used_assertion (hash, used_by, expires_at) VALUES (?, ?, ?)`;
  }

  /**
   * Uses an assertion. Of parallel attempts the unique key lets one; its own, sent again after a lost answer, is still its.
   *
   * @throws OAuthError `invalid_grant` when it was used before
   */
  async use({ issuer, jti, expires }: ProvenUser, attempt: string): Promise<void> {
    const hash = sha256(JSON.stringify([issuer, jti]));
    const row = [hash, attempt, new Date((expires + SKEW) * 1000)];
    if ((await this.database.changeAgain(this.insert, row)) > 0) return;
    const sql = 'SELECT 1 FROM used_assertion WHERE hash = ? AND used_by = ?';
    if ((await this.database.select(sql, [hash, attempt])).length === 0)
      throw OAuthError.invalidGrant('assertion: used before');
  }
}
