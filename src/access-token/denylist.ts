import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import type { AccessTokenClaims } from './access-tokens.js';
import type { RevocationKind } from './revocation.entity.js';

/** What the denylist must know of a token to tell whether it was revoked. */
export type RevocableToken = Pick<AccessTokenClaims, 'jti' | 'sub' | 'client_id' | 'iat' | 'exp'>;

/** Later than any token: what names a token or a chain of them is revoked whenever it was issued. */
const EVER = new Date('9999-12-31T00:00:00Z');

const REVOKES = `
  SELECT 1 FROM revocation
  WHERE (kind = 'jti' AND value = ?) OR (kind = 'family' AND value = ?)
    OR (kind = 'subject' AND value = ? AND issued_before >= ?) OR (kind = 'client' AND value = ? AND issued_before >= ?)
  LIMIT 1`;

/** Tokens that ended before their time. Read from the database at each use, so that it holds at once on every pod. */
@Injectable()
export class Denylist {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly configuration: Configuration,
  ) {}

  /** Ends one token: `jti` is its own, that of a foreign token with its issuer before it. */
  revokeToken({ jti, exp }: Pick<RevocableToken, 'jti' | 'exp'>): Promise<void> {
    return this.revoke('jti', jti, EVER, exp - this.clock.seconds());
  }

  /** Ends every token whose `jti` begins with the family's id, those still to come too. */
  revokeFamily(family: string, ttl: number): Promise<void> {
    return this.revoke('family', family, EVER, ttl);
  }

  /**
   * Ends the tokens that a customer, an agent or a client has now.
   *
   * @param ttl seconds that the longest of them can live
   * @param margin seconds in which other processes may still issue some
   */
  revokeAllOf(kind: 'subject' | 'client', value: string, ttl: number, margin = 0): Promise<void> {
    return this.revoke(kind, value, new Date(this.clock.now() + margin * 1000), ttl);
  }

  /** Ends the tokens of a subject that is gone for good, also one that is being issued at this moment. */
  revokeForever(subject: string, ttl: number): Promise<void> {
    return this.revoke('subject', subject, EVER, ttl);
  }

  /** Whether a token has been revoked, by whatever names it. */
  async revokes({ jti, sub, client_id, iat }: Omit<RevocableToken, 'exp'>): Promise<boolean> {
    const issued = new Date(iat * 1000);
    const rows = await this.database.select(REVOKES, [jti, familyOf(jti), sub, issued, client_id, issued]);
    return rows.length > 0;
  }

  private async revoke(kind: RevocationKind, value: string, issuedBefore: Date, ttl: number): Promise<void> {
    // a transfer token outlives the bearer it was made with, and asks for it to the end
    const kept = ttl + this.configuration.TRANSFER_TOKEN_TTL;
    const expires = new Date(this.clock.now() + kept * 1000);
    const update = 'UPDATE revocation SET issued_before = ?, expires_at = ? WHERE kind = ? AND value = ?';
    if ((await this.database.change(update, [issuedBefore, expires, kind, value])) > 0) return;
    const insert = `INSERT ${this.database.ignore} INTO revocation (kind, value, issued_before, expires_at) VALUES (?, ?, ?, ?)`;
    await this.database.change(insert, [kind, value, issuedBefore, expires]);
  }
}

/** The chain of refreshes that a token belongs to; a token that no refresh token goes with is a chain of its own. */
export function familyOf(jti: string): string {
  return jti.split('.', 1)[0] as string;
}
