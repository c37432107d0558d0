import type { GrantMetadata } from './grant.js';

/** A token whose proof ends with its caller lasts at most so long (protocol §10.7). */
const MAX_LIFETIME_WITH_CALLER_SECONDS = 86_400;

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
