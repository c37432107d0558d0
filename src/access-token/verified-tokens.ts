import { RecentMap } from '../platform/recent-map.js';
import type { SigningKey } from './key-set.js';

/** The most tokens that are remembered. A token takes 0.7 KB of the heap, a large one 3.1 KB (docs/performance.md). */
const MAX_VERIFIED_TOKENS = 5_000;

interface VerifiedToken<Claims> {
  claims: Readonly<Claims>;
  key: SigningKey;
}

/**
 * The tokens whose signature was verified last, by the hash of the token. This memory saves the cost of the signature
 * only: the service checks the key and the times at each use, and asks the database whether the token has ended
 * (docs/decisions/0032-verified-tokens.md).
 */
export class VerifiedTokens<Claims extends object> {
  private readonly tokens = new RecentMap<VerifiedToken<Claims>>(MAX_VERIFIED_TOKENS);

  /**
   * The claims of a token that was verified with this key. A change of the key file replaces all keys, so that each
   * token is then verified again.
   */
  find(hash: string, key: SigningKey): Readonly<Claims> | undefined {
    const token = this.tokens.get(hash);
    return token?.key === key ? token.claims : undefined;
  }

  /** Adds a token whose signature is valid. Many requests use the same claims, so they can no longer be changed. */
  add(hash: string, key: SigningKey, claims: Claims): void {
    this.tokens.set(hash, { claims: frozen(claims), key });
  }

  /** The number of tokens, for tests. @internal */
  get size(): number {
    return this.tokens.size;
  }
}

function frozen<Value extends object>(value: Value): Value {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) frozen(part);
  return Object.freeze(value);
}
