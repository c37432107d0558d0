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
 *
 * The tokens are in two maps. When the newer map has half of the tokens, it becomes the older one, whose tokens are
 * dropped together. So a drop costs the same, however many tokens there are.
 */
export class VerifiedTokens<Claims extends object> {
  private newer = new Map<string, VerifiedToken<Claims>>();
  private older = new Map<string, VerifiedToken<Claims>>();

  /**
   * The claims of a token that was verified with this key. A change of the key file replaces all keys, so that each
   * token is then verified again.
   */
  find(hash: string, key: SigningKey): Readonly<Claims> | undefined {
    const token = this.newer.get(hash) ?? this.promote(hash);
    return token?.key === key ? token.claims : undefined;
  }

  /** Adds a token whose signature is valid. Many requests use the same claims, so they can no longer be changed. */
  add(hash: string, key: SigningKey, claims: Claims): void {
    this.insert(hash, { claims: frozen(claims), key });
  }

  /** The number of tokens, for tests. @internal */
  get size(): number {
    return this.newer.size + this.older.size;
  }

  /** Moves a token that is used again from the older tokens to the newer ones. */
  private promote(hash: string): VerifiedToken<Claims> | undefined {
    const token = this.older.get(hash);
    if (!token) return undefined;
    this.older.delete(hash);
    this.insert(hash, token);
    return token;
  }

  private insert(hash: string, token: VerifiedToken<Claims>): void {
    if (this.newer.size >= MAX_VERIFIED_TOKENS / 2) {
      this.older = this.newer;
      this.newer = new Map();
    }
    this.newer.set(hash, token);
  }
}

function frozen<Value extends object>(value: Value): Value {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) frozen(part);
  return Object.freeze(value);
}
