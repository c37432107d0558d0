import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, vi } from 'vitest';
import type { Clock } from '../../src/clock.js';
import type { TokenVerifierOptions } from '../../src/options.js';
import { TokenVerifier } from '../../src/token-verifier.js';
import { TestIssuer } from './test-issuer.js';

/** The longest pause of a verifier between two requests. `VerifierTest.pausesMs` has the pauses that it asked for. */
const MAX_PAUSE_MS = 10;

/** A clock that moves only when a test moves it. */
class TestClock implements Clock {
  private wallMs = 1_800_000_000_000;
  private monotonicMs = 0;

  now = () => this.wallMs;
  monotonic = () => this.monotonicMs;
  seconds = () => Math.floor(this.wallMs / 1000);

  /** Time passes. */
  advance(seconds: number): void {
    this.wallMs += seconds * 1000;
    this.monotonicMs += seconds * 1000;
  }

  /** An operator or NTP sets the clock; negative to set it back. */
  set(bySeconds: number): void {
    this.wallMs += bySeconds * 1000;
  }
}

/** An issuer and verifiers for each test, which end with the test. */
export class VerifierTest {
  clock!: TestClock;
  issuer!: TestIssuer;
  /** The pauses between the requests of the verifiers. */
  pausesMs: number[] = [];
  private verifiers: TokenVerifier[] = [];

  constructor() {
    beforeAll(() => this.shortenPauses());
    afterAll(() => {
      vi.restoreAllMocks();
      syncBuiltinESMExports();
    });
    beforeEach(async () => {
      this.clock = new TestClock();
      this.pausesMs = [];
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

  private shortenPauses(): void {
    const sleep = timers.setTimeout;
    vi.spyOn(timers, 'setTimeout').mockImplementation((delayMs = 0, ...more) => {
      this.pausesMs.push(delayMs);
      return sleep(Math.min(delayMs, MAX_PAUSE_MS), ...more) as never;
    });
    syncBuiltinESMExports(); // the named import of the verifier then has the spy, too
  }
}

export const eventually = (check: () => unknown): Promise<unknown> =>
  vi.waitFor(check, { timeout: 60_000, interval: 10 });

/** A promise that a test resolves. */
export function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((resolvePromise) => {
    resolve = resolvePromise;
  });
  return { promise, resolve: () => resolve() };
}
