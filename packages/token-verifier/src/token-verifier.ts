import { compactVerify, errors } from 'jose';
import { assertIssuerAndAudience, assertTimes, readClaims, type VerifiedClaims } from './claims.js';
import { type Clock, systemClock } from './clock.js';
import { TokenVerifierError } from './errors.js';
import type { FeedProblem } from './feed-problem.js';
import { messageOf } from './fetch-json.js';
import { IssuerKeys } from './issuer-keys.js';
import { type CheckedOptions, checkOptions, type TokenVerifierOptions } from './options.js';
import type { PublicKey } from './public-keys.js';
import { Readiness } from './readiness.js';
import { RevocationFeed } from './revocation-feed.js';
import { RevocationList } from './revocation-list.js';
import { parseToken } from './token-form.js';
import { VerifiedTokens } from './verified-tokens.js';

/** What the verifier knows about revocations. */
export interface VerifierState {
  /**
   * `starting`: no full list yet. `current`: all revocations are known up to `syncedAt`, at most `maxAgeSeconds` ago.
   * `stale`: some may be missing. `closed`: after `close()`.
   */
  readonly revocations: 'starting' | 'current' | 'stale' | 'closed';
  /** The last moment at which the list was complete. */
  readonly syncedAt?: Date;
  /** What is wrong with the feed. */
  readonly problem?: FeedProblem;
  /** The status of the last response of the feed, if it was not 200. */
  readonly httpStatus?: number;
  /** The number of revocations in memory. */
  readonly entries: number;
}

/** Verifies access tokens without a request per token. */
export class TokenVerifier {
  private readonly stopped = new AbortController();
  private readonly readiness = new Readiness();
  private readonly list: RevocationList;
  private readonly tokens: VerifiedTokens;
  private readonly keys: IssuerKeys;
  private readonly feed: RevocationFeed;
  readonly #options: CheckedOptions; // A private name, so that a log of the object does not show the secret.

  /** @internal Use `createTokenVerifier`. */
  constructor(
    options: TokenVerifierOptions,
    private readonly clock: Clock = systemClock,
  ) {
    this.#options = checkOptions(options);
    const { jwksUrl, maxKeyAgeMs, feedUrl, credentials, maxAgeSeconds, maxEntries, cacheSize } = this.#options;
    const { signal } = this.stopped;
    this.tokens = new VerifiedTokens(cacheSize);
    this.list = new RevocationList(maxEntries);
    this.keys = new IssuerKeys({ url: jwksUrl, maxAgeMs: maxKeyAgeMs, signal }, clock);
    const feedOptions = { url: feedUrl, credentials, maxAgeSeconds, signal };
    this.feed = new RevocationFeed(feedOptions, this.list, clock, () => this.readiness.add('list'));
    void this.feed.follow();
    this.keys.load().then(
      () => this.readiness.add('keys'),
      () => {}, // The verifier was closed.
    );
  }

  /**
   * Resolves to the claims of a valid token, with `userVerified`.
   *
   * @param token `REGION:JWS` or the bare JWS
   * @throws TokenVerifierError whose `code` says why the token is not accepted
   */
  async verify(token: string): Promise<VerifiedClaims> {
    if (this.stopped.signal.aborted) throw new TokenVerifierError('verifier_closed');
    const { jws, kid } = parseToken(token);
    const { key } = await this.keys.find(kid);
    const { claims } = this.tokens.get(jws, key) ?? (await this.verifySignature(jws, key));
    assertTimes(claims, this.clock.now());
    const endedReason = this.list.endedReason(claims);
    if (endedReason) throw new TokenVerifierError(endedReason);
    if (!this.feed.isCurrent && !this.acceptsStale()) throw new TokenVerifierError('revocations_stale');
    return claims;
  }

  /** Whether the revocations are known, for health checks and metrics. */
  get state(): VerifierState {
    const { syncedAt, currentProblem: problem, httpStatus } = this.feed;
    return {
      revocations: this.status(),
      ...(syncedAt && { syncedAt: new Date(syncedAt.now) }),
      ...(problem && { problem }),
      ...(httpStatus !== undefined && { httpStatus }),
      entries: this.list.size,
    };
  }

  /**
   * Resolves when the full list of revocations and the keys were read once. The process stays alive until then. If the
   * signal aborts, rejects with an error whose message names what is missing and why, and whose `cause` is the reason
   * of the signal. Rejects with `verifier_closed` after `close()`.
   */
  ready({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    return this.readiness.wait(signal, () => new Error(this.notReadyMessage(), { cause: signal?.reason }));
  }

  /** Ends the requests of the verifier. No token is accepted afterwards. */
  close(): void {
    this.stopped.abort();
    this.readiness.reject(new TokenVerifierError('verifier_closed'));
  }

  /** Before the first full list, no ended token is known. A wrong secret would then let all of them pass forever. */
  private acceptsStale(): boolean {
    return this.#options.onStale === 'accept' && this.readiness.has('list');
  }

  private notReadyMessage(): string {
    const { problem = 'no response yet', httpStatus } = this.state;
    const list = `the revocations were not read (${problem}${httpStatus === undefined ? '' : `, status ${httpStatus}`})`;
    const keys = `the keys were not read (${messageOf(this.keys.failure)})`;
    const missing = [this.readiness.has('list') ? [] : list, this.readiness.has('keys') ? [] : keys].flat();
    return `The verifier is not ready: ${missing.join('; ')}`;
  }

  private status(): VerifierState['revocations'] {
    if (this.stopped.signal.aborted) return 'closed';
    if (this.feed.isCurrent) return 'current';
    return this.readiness.has('list') ? 'stale' : 'starting';
  }

  private async verifySignature(jws: string, key: PublicKey['key']) {
    const { payload } = await compactVerify(jws, key, { algorithms: ['ES256'] }).catch((cause: unknown) => {
      const isInvalid = cause instanceof errors.JWSSignatureVerificationFailed;
      throw new TokenVerifierError(isInvalid ? 'invalid_signature' : 'malformed', { cause });
    });
    const claims = readClaims(payload);
    assertIssuerAndAudience(claims, this.#options.issuer, this.#options.audiences);
    const verified = { claims, key };
    this.tokens.set(jws, verified);
    return verified;
  }
}

/**
 * Starts to fetch the keys of the issuer and to follow its revocation feed.
 *
 * @throws TypeError that names an invalid option
 */
export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  return new TokenVerifier(options);
}
