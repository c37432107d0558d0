import { Injectable } from '@nestjs/common';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Clock } from '../../platform/clock.js';
import { sha256 } from '../../platform/secret.js';
import { PROOF_CLOCK_SKEW_MS, ProofUses } from '../../redemption/proof-uses.js';
import type { AnyGrantRequest } from '../grant.js';

/** Ensures that a proof gets at most as many tokens as `uses` of its grant declares, in all processes together. */
@Injectable()
export class UseCounter {
  /** @internal */
  constructor(
    private readonly proofUses: ProofUses,
    private readonly clock: Clock,
  ) {}

  /**
   * Counts a use before the grant creates anything. One statement decides between parallel requests. The endpoint gives
   * the use back if the response is 429 or 503.
   *
   * @param key names the proof within the organization, such as the `jti` of a JWT together with its issuer
   * @param expiresAt when the proof ends, after which the count is deleted; `null` if it never ends
   * @throws OAuthError `invalid_grant` if the proof has been used up or has expired, or expires later than `lifetime`
   * of the grant allows
   */
  async count(request: AnyGrantRequest, key: string, expiresAt: Date | null): Promise<void> {
    const { name, uses, lifetime = Infinity } = request.declared;
    if (typeof uses !== 'number') throw new Error(`${name}: UseCounter needs a number as \`uses\` in @GrantType`);
    const end = expiresAt?.getTime() ?? Infinity;
    const now = this.clock.now();
    if (Number.isNaN(end) || end <= now) throw OAuthError.invalidGrant('proof: expired');
    if (end > now + lifetime * 1000 + PROOF_CLOCK_SKEW_MS) throw OAuthError.invalidGrant('proof: valid for too long');
    const hash = hashOf(request, key);
    if (!(await this.proofUses.count(hash, uses, end))) throw OAuthError.invalidGrant('proof: used up');
    request.counted.push({ giveBack: () => this.proofUses.giveBack(hash) });
  }
}

function hashOf({ declared, organization }: AnyGrantRequest, key: string): string {
  return sha256(JSON.stringify([declared.name, organization?.id, key]));
}
