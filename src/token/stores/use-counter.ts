import { Injectable } from '@nestjs/common';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { insertIgnoreStatement, writeStatement } from '../../platform/database/statement.js';
import { sha256 } from '../../platform/secret.js';
import type { AnyGrantRequest } from '../grant.js';
import { ProofUse } from './proof-use.entity.js';

/** The clock of another process, or of the issuer of the proof, may differ by as much. */
const CLOCK_SKEW_MS = 30_000;

const FIRST_USE = insertIgnoreStatement({ into: ProofUse, columns: ['hash', 'uses', 'expires_at'] });
/** Another proof with the same key, which ends later, is counted until then. */
const FURTHER_USE = writeStatement<[end: Date | null, end: Date | null, hash: string, limit: number]>(
  `UPDATE proof_use SET uses = uses + 1,
    expires_at = CASE WHEN expires_at IS NULL OR expires_at > ? THEN expires_at ELSE ? END
    WHERE hash = ? AND uses < ?`,
);
const GIVE_BACK = writeStatement<[hash: string]>('UPDATE proof_use SET uses = uses - 1 WHERE hash = ? AND uses > 0');

/** Ensures that a proof gets at most as many tokens as `uses` of its grant declares, in all processes together. */
@Injectable()
export class UseCounter {
  /** @internal */
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /**
   * Counts a use before the grant creates anything. One statement decides between parallel requests. The endpoint gives the
   * use back if the response is 429 or 503.
   *
   * @param key names the proof within the organization, such as the `jti` of a JWT together with its issuer
   * @param expiresAt when the proof ends, after which the count is deleted; `null` if it never ends
   * @throws OAuthError `invalid_grant` if the proof has been used up or has expired, or expires later than `lifetime` of the
   * grant allows
   */
  async count(request: AnyGrantRequest, key: string, expiresAt: Date | null): Promise<void> {
    const { name, uses, lifetime = Infinity } = request.declared;
    if (typeof uses !== 'number') throw new Error(`${name}: UseCounter needs a number as \`uses\` in @GrantType`);
    const end = expiresAt?.getTime() ?? Infinity;
    const now = this.clock.now();
    if (Number.isNaN(end) || end <= now) throw OAuthError.invalidGrant('proof: expired');
    if (end > now + lifetime * 1000 + CLOCK_SKEW_MS) throw OAuthError.invalidGrant('proof: valid for too long');
    const hash = hashOf(request, key);
    const kept = end === Infinity ? null : new Date(end + CLOCK_SKEW_MS);
    const isFirst = (await this.database.execute(FIRST_USE, [hash, 1, kept])) > 0;
    if (!isFirst && (await this.database.execute(FURTHER_USE, [kept, kept, hash, uses])) === 0)
      throw OAuthError.invalidGrant('proof: used up');
    request.counted.push({ giveBack: () => this.database.execute(GIVE_BACK, [hash]) });
  }
}

function hashOf({ declared, organization }: AnyGrantRequest, key: string): string {
  return sha256(JSON.stringify([declared.name, organization?.id, key]));
}
