import type { VerifiedClaims } from './claims.js';
import type { PublicKey } from './public-keys.js';

/** A token whose signature, issuer and audience are valid. */
export interface VerifiedToken {
  readonly claims: VerifiedClaims;
  readonly key: PublicKey['key'];
}

/** The tokens that were used last. Times and revocations are checked at each use, and so is the key. */
export class VerifiedTokens {
  private readonly tokens = new Map<string, VerifiedToken>();

  constructor(private readonly maxTokens: number) {}

  /** Returns the token only if it was verified with this key. */
  get(jws: string, key: PublicKey['key']): VerifiedToken | undefined {
    const token = this.tokens.get(jws);
    if (token === undefined) return undefined;
    this.tokens.delete(jws);
    if (token.key !== key) return undefined;
    this.tokens.set(jws, token); // A map is in the order of insertion, so the token is the newest now.
    return token;
  }

  set(jws: string, token: VerifiedToken): void {
    if (this.maxTokens === 0) return;
    const [oldest] = this.tokens.keys();
    if (oldest !== undefined && this.tokens.size >= this.maxTokens) this.tokens.delete(oldest);
    this.tokens.set(jws, token);
  }
}
