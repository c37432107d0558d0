import { Injectable } from '@nestjs/common';
import { Database, insertIgnoreStatement, OAuthError, sha256, writeStatement } from '../../public/grant.js';
import type { ProvenUser } from './assertions.js';
import { UsedAssertion } from './used-assertion.entity.js';

/** The clock of another process may be behind. */
const RETENTION_MARGIN_SECONDS = 30;

const INSERT = insertIgnoreStatement({ into: UsedAssertion, columns: ['hash', 'expires_at'] });

const DELETE = writeStatement<[hash: string]>('DELETE FROM used_assertion WHERE hash = ?');

/** Ensures that an assertion is used only once (RFC 7523 §5.2). */
@Injectable()
export class UsedAssertions {
  constructor(private readonly database: Database) {}

  /**
   * Two organizations may have sign-in systems with the same issuer text, and one must not use up the assertions of the
   * other. The primary key lets one of several parallel INSERTs succeed. After an outage the assertion may have been used.
   *
   * @throws OAuthError `invalid_grant` if the assertion was used before
   */
  async use(user: ProvenUser, organizationId: string): Promise<void> {
    const expiresAt = new Date((user.expires + RETENTION_MARGIN_SECONDS) * 1000);
    const inserted = await this.database.execute(INSERT, [hashOf(user, organizationId), expiresAt]);
    if (inserted === 0) throw OAuthError.invalidGrant('assertion: used before');
  }

  /** Makes an assertion usable again whose use gave nothing. */
  async giveBack(user: ProvenUser, organizationId: string): Promise<void> {
    await this.database.execute(DELETE, [hashOf(user, organizationId)]);
  }
}

function hashOf({ issuer, jti }: ProvenUser, organizationId: string): string {
  return sha256(JSON.stringify([organizationId, issuer, jti]));
}
