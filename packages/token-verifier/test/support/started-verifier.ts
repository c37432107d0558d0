import { afterEach, beforeEach, vi } from 'vitest';
import type { TokenVerifierOptions } from '../../src/options.js';
import { TokenVerifier } from '../../src/token-verifier.js';
import { TestClock } from './test-clock.js';
import { TestIssuer } from './test-issuer.js';

/** An issuer and verifiers for each test, which end with the test. */
export class VerifierTest {
  clock!: TestClock;
  issuer!: TestIssuer;
  private verifiers: TokenVerifier[] = [];

  constructor() {
    beforeEach(async () => {
      this.clock = new TestClock();
      this.issuer = await TestIssuer.start();
    });
    afterEach(async () => {
      for (const verifier of this.verifiers.splice(0)) verifier.close();
      await this.issuer.stop();
    });
  }

  create(changes: Partial<TokenVerifierOptions> = {}): TokenVerifier {
    const verifier = new TokenVerifier({ ...this.issuer.options, ...changes }, this.clock);
    this.verifiers.push(verifier);
    return verifier;
  }

  async start(changes: Partial<TokenVerifierOptions> = {}): Promise<TokenVerifier> {
    const verifier = this.create(changes);
    await verifier.ready();
    return verifier;
  }

  /** The options for another behavior of the feed. */
  revocations(changes: Partial<TokenVerifierOptions['revocations']>): Partial<TokenVerifierOptions> {
    return { revocations: { ...this.issuer.options.revocations, ...changes } };
  }

  /** A token that is valid now. */
  token(changes: object = {}): Promise<string> {
    return this.issuer.token(this.clock.now(), changes);
  }
}

export const eventually = (check: () => unknown): Promise<unknown> =>
  vi.waitFor(check, { timeout: 60_000, interval: 10 });
