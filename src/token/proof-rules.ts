import { OAuthError } from '../oauth/oauth-error.js';
import { errorOf } from '../oauth/thrown-error.js';
import type { AnyGrantRequest, GrantMetadata, GrantResult } from './grant.js';

/** A token whose proof ends with its caller lasts at most so long (protocol §10.7). */
const MAX_LIFETIME_WITH_CALLER_SECONDS = 86_400;

const REPEATABLE_STATUSES = [429, 503];

const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) > 0;

/** @throws Error if the rules that a grant declares about its proofs are not usable */
export function assertRulesUsable({ uses, lifetime, guesses, endsWith }: GrantMetadata, className: string): void {
  const fail = (reason: string) => new Error(`${className}: ${reason}`);
  if (uses !== undefined && uses !== 'unlimited' && !isCount(uses))
    throw fail("uses must be a number from 1, or 'unlimited'");
  if (lifetime !== undefined && !isCount(lifetime)) throw fail('lifetime must be a number of seconds');
  if (guesses !== undefined && !isCount(guesses)) throw fail('guesses must be a number from 1');
  if (endsWith === 'caller' && lifetime !== undefined && lifetime > MAX_LIFETIME_WITH_CALLER_SECONDS)
    throw fail(`lifetime must be at most ${MAX_LIFETIME_WITH_CALLER_SECONDS} with endsWith 'caller'`);
}

/** @throws OAuthError 500 if a grant does not keep a rule that it declares */
export function assertRulesKept(grant: GrantMetadata, request: AnyGrantRequest, result: GrantResult): void {
  const { uses, endsWith } = grant;
  if (typeof uses === 'number' && request.counted.length === 0)
    throw brokenRule(grant, 'declares `uses`; call `UseCounter.count` before anything is created');
  if (endsWith === 'caller' && result.proof === undefined)
    throw brokenRule(grant, "declares endsWith 'caller'; return `proof`, as `proof()` of the caller gave it");
  if (endsWith !== 'caller' && result.proof !== undefined)
    throw brokenRule(grant, "returned `proof`; declare endsWith: 'caller' in @GrantType");
  if (endsWith === 'sessions' && result.generation === undefined)
    throw brokenRule(grant, "declares endsWith 'sessions'; return `generation`, as it was when the proof was created");
}

/** The error of the service for a grant that breaks a rule. The log says which. */
export function brokenRule({ name }: Pick<GrantMetadata, 'name'>, reason: string): OAuthError {
  return OAuthError.serverError(new Error(`${name}: ${reason}`));
}

/** Runs a step of a request. If its response is 429 or 503, the caller may repeat it with the proof, which it gives back. */
export async function givingBack<Result>(request: AnyGrantRequest, step: () => Promise<Result>): Promise<Result> {
  try {
    return await step();
  } catch (error) {
    if (REPEATABLE_STATUSES.includes(errorOf(error).status))
      // the database may be unavailable, and the proof is then used up
      for (const { giveBack } of request.counted) await giveBack().catch(() => undefined);
    throw error;
  }
}
