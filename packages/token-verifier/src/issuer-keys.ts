import { setTimeout as sleep } from 'node:timers/promises';
import { ageMs, type Clock, type Moment, momentBefore, momentOf } from './clock.js';
import { TokenVerifierError } from './errors.js';
import { fetchJson, MalformedResponseError } from './fetch-json.js';
import { importKeys, type PublicKey, type PublicKeys } from './public-keys.js';
import { retryDelayMs } from './retry-delay.js';

/** How old the keys may be before a request fetches them. The service allows caches 5 minutes. */
const REFRESH_AFTER_MS = 300_000;
/** How long a request waits for newer keys before the known keys verify its token. */
const MAX_REFRESH_WAIT_MS = 1_000;
/** How long after a fetch an unknown `kid` or a response from a cache causes no other fetch. */
const FETCH_PAUSE_MS = 30_000;
/** Callers can invent any number of ids. */
const MAX_UNKNOWN_KEYS = 100;
/** How long after a failed fetch no other fetch starts. */
const FAILURE_PAUSE_MS = 1_000;
const FETCH_TIMEOUT_MS = 5_000;
const MAX_RESPONSE_BYTES = 64 * 1024;

export interface IssuerKeysOptions {
  url: URL;
  /** How long known keys verify tokens while the keys cannot be fetched. */
  maxAgeMs: number;
  signal: AbortSignal;
}

/** When a token named a `kid`: the moment, and the fetches that had begun. */
interface Seen {
  fetches: number;
  seenAt: Moment;
}

/** The public keys of the issuer, fetched when needed and cached. Concurrent requests share one fetch. */
export class IssuerKeys {
  private keys: PublicKeys = new Map();
  /** When and in which fetch the keys were requested. */
  private requestedAt: Moment | undefined;
  private requestNumber = 0;
  /** The last moment at which the issuer had these keys: earlier than the request if a cache responded. */
  private currentAt: Moment | undefined;
  /** The fetches that have begun. */
  private fetches = 0;
  /** Each `kid` that has no key, or no longer. */
  private readonly unknownKids = new Map<string, Seen>();
  private failedAt: Moment | undefined;
  /** The error of the last fetch that failed. */
  failure: unknown;
  private fetching: Promise<void> | undefined;
  /** Ends with the fetch or before. Requests share one, so that only the first second of a fetch delays them. */
  private refreshWait: Promise<void> | undefined;

  constructor(
    private readonly options: IssuerKeysOptions,
    private readonly clock: Clock,
  ) {}

  /** Finds a key. An unknown `kid` causes a fetch, because the issuer may have published the key since the last one. */
  async find(kid: string): Promise<PublicKey> {
    await this.refresh();
    return this.keys.get(kid) ?? this.fetchAndFind(kid);
  }

  /**
   * Fetches the keys if they are old. The issuer may have removed a key, so that the request waits for the fetch. The
   * known keys verify the token if the fetch fails, or takes longer than a second.
   *
   * @throws TokenVerifierError `keys_unavailable` if the keys are too old, and cannot be fetched
   */
  async refresh(): Promise<void> {
    if (!this.isWithin(this.currentAt, this.options.maxAgeMs)) return this.fetchOnce();
    if (this.isWithin(this.currentAt, REFRESH_AFTER_MS) || this.isWithin(this.requestedAt, FETCH_PAUSE_MS)) return;
    this.fetchOnce().catch(() => {}); // The known keys hold.
    if (this.fetching) await this.refreshWait;
  }

  /** Fetches the keys until they are known, with pauses. Rejects only if the signal aborts. */
  async load(): Promise<void> {
    for (let failures = 1; this.requestedAt === undefined; failures++) {
      this.options.signal.throwIfAborted();
      await this.fetchOnce().catch(() => this.pause(retryDelayMs(failures)));
    }
  }

  private async fetchAndFind(kid: string): Promise<PublicKey> {
    const firstSeen = this.noteUnknown(kid, { fetches: this.fetches, seenAt: momentOf(this.clock) });
    if (!this.isWithin(this.requestedAt, FETCH_PAUSE_MS)) await this.fetchOnce();
    const key = this.keys.get(kid);
    if (key) return key;
    if (this.wereRequestedAfter(firstSeen)) throw new TokenVerifierError('unknown_key');
    // The issuer may have published the key since the known ones. A 401 would make the caller drop a valid token.
    throw new TokenVerifierError('keys_unavailable', { retryAfterSeconds: this.pauseSeconds() });
  }

  /** Returns the value for the first token with this `kid`. */
  private noteUnknown(kid: string, seen: Seen): Seen {
    const firstSeen = this.unknownKids.get(kid) ?? seen;
    this.unknownKids.set(kid, firstSeen);
    const [oldest = ''] = this.unknownKids.keys();
    if (this.unknownKids.size > MAX_UNKNOWN_KEYS) this.unknownKids.delete(oldest);
    return firstSeen;
  }

  private wereRequestedAfter({ fetches, seenAt }: Seen): boolean {
    const { currentAt, requestNumber } = this;
    return currentAt !== undefined && requestNumber > fetches && currentAt.monotonic >= seenAt.monotonic;
  }

  /** The seconds until an unknown `kid` causes a fetch. */
  private pauseSeconds(): number {
    const passedMs = this.requestedAt ? ageMs(this.requestedAt, this.clock) : FETCH_PAUSE_MS;
    return Math.max(1, Math.ceil((FETCH_PAUSE_MS - passedMs) / 1000));
  }

  private async fetchOnce(): Promise<void> {
    if (this.isWithin(this.failedAt, FAILURE_PAUSE_MS)) throw this.unavailable();
    if (!this.fetching) {
      this.fetching = this.fetch().finally(() => {
        this.fetching = undefined;
      });
      this.refreshWait = endWithin(MAX_REFRESH_WAIT_MS, this.fetching);
    }
    await this.fetching;
  }

  private async fetch(): Promise<void> {
    const { url, signal, maxAgeMs } = this.options;
    const [requestedAt, requestNumber] = [momentOf(this.clock), ++this.fetches];
    try {
      const limits = { timeoutMs: FETCH_TIMEOUT_MS, maxBytes: MAX_RESPONSE_BYTES };
      const { body, ageMs: cacheAgeMs } = await fetchJson({ url, signal, ...limits });
      if (cacheAgeMs > maxAgeMs) throw new MalformedResponseError('the response of a cache is too old');
      const known = this.keys;
      this.keys = await importKeys(body, known);
      this.requestedAt = requestedAt;
      this.requestNumber = requestNumber;
      this.currentAt = momentBefore(requestedAt, cacheAgeMs);
      this.failedAt = undefined;
      const before = { fetches: requestNumber - 1, seenAt: this.currentAt };
      for (const kid of known.keys()) if (!this.keys.has(kid)) this.noteUnknown(kid, before);
    } catch (error) {
      this.failedAt = momentOf(this.clock);
      this.failure = error;
      throw this.unavailable();
    }
  }

  private async pause(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: this.options.signal, ref: false }).catch(() => {});
  }

  private unavailable(): TokenVerifierError {
    return new TokenVerifierError('keys_unavailable', { cause: this.failure });
  }

  private isWithin(moment: Moment | undefined, milliseconds: number): boolean {
    return moment !== undefined && ageMs(moment, this.clock) < milliseconds;
  }
}

/** Resolves when the promise ends, or after the time. */
async function endWithin(milliseconds: number, promise: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const time = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([promise.catch(() => {}), time]);
  clearTimeout(timer);
}
