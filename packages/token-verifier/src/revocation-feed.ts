import { setTimeout as sleep } from 'node:timers/promises';
import { ageMs, type Clock, type Moment, momentBefore, momentOf } from './clock.js';
import { type FeedProblem, problemOf } from './feed-problem.js';
import { feedRequest } from './feed-request.js';
import { readFeedPage } from './feed-response.js';
import { fetchJson, StatusError } from './fetch-json.js';
import type { Credentials } from './options.js';
import { retryAfterMs, retryDelayMs } from './retry-delay.js';
import type { RevocationList } from './revocation-list.js';

const MAX_WAIT_SECONDS = 25;
/** In addition to the seconds that the service waits. */
const FEED_TIMEOUT_MS = 5_000;
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
/** The shortest time between two requests that return nothing further, or nothing new. */
const MIN_INTERVAL_MS = 200;
/**
 * The shortest pause after a response that came too early and had nothing new. The service then has more waiting
 * requests than it can serve, stops, or does not publish revocations. At once, all consumers would send their requests
 * again and end each other's waits.
 */
const EARLY_PAUSE_MS = 1_000;

export interface RevocationFeedOptions {
  url: URL;
  credentials: Credentials;
  maxAgeSeconds: number;
  signal: AbortSignal;
}

/** Follows the revocation feed of the service, and fills the list. */
export class RevocationFeed {
  /** The last moment at which the list was complete: that of the request, because the response may arrive late. */
  syncedAt: Moment | undefined;
  private cursor: string | undefined;
  private isCaughtUp = false;
  private failures = 0;
  private problem: FeedProblem | undefined;
  /** The status of the last response, if it was not 200. */
  httpStatus: number | undefined;
  readonly #options: RevocationFeedOptions; // A private name, so that a log of the object does not show the secret.

  constructor(
    options: RevocationFeedOptions,
    private readonly list: RevocationList,
    private readonly clock: Clock,
    private readonly onSync: () => void,
  ) {
    this.#options = options;
  }

  /** Whether all revocations are known up to a recent moment. */
  get isCurrent(): boolean {
    if (!this.syncedAt || ageMs(this.syncedAt, this.clock) > this.#options.maxAgeSeconds * 1000) return false;
    return !this.listProblem && this.problem !== 'malformed_response';
  }

  /** The reason for which the list is stale, or will become stale. */
  get currentProblem(): FeedProblem | undefined {
    return this.listProblem ?? this.problem;
  }

  /** Follows the feed until the signal aborts. */
  async follow(): Promise<void> {
    const { signal } = this.#options;
    while (!signal.aborted) {
      const delayMs = await this.requestPage().catch((error: unknown) => this.delayAfter(error));
      if (delayMs > 0) await sleep(delayMs, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  private get listProblem(): FeedProblem | undefined {
    const now = this.clock.now();
    return this.list.isIncompleteAt(now) ? 'clock_set_back' : this.list.skippedReason(now);
  }

  /** Resolves to the delay before the next request. */
  private async requestPage(): Promise<number> {
    if (this.list.isIncompleteAt(this.clock.now())) this.startOver();
    const waitSeconds = this.isCaughtUp ? this.waitSeconds() : 0;
    const sentAt = momentOf(this.clock);
    const { url, credentials } = this.#options;
    const response = await fetchJson({
      ...(await feedRequest(url, this.parametersOf(waitSeconds), credentials)),
      timeoutMs: waitSeconds * 1000 + FEED_TIMEOUT_MS,
      maxBytes: MAX_RESPONSE_BYTES,
      signal: this.#options.signal,
    });
    const { entries, cursor, complete } = readFeedPage(response.body);
    await this.list.purge(this.clock.now());
    this.list.add(entries);
    const hasAdvanced = cursor !== this.cursor;
    this.cursor = cursor;
    this.isCaughtUp = complete;
    if (!complete) return hasAdvanced ? 0 : earlyPauseMs(); // The service has entries that it did not publish yet.
    this.failures = 0;
    this.problem = undefined;
    this.httpStatus = undefined;
    this.syncedAt = momentBefore(sentAt, response.ageMs);
    this.onSync();
    const isEarly = this.clock.monotonic() - sentAt.monotonic < (waitSeconds * 1000) / 2;
    return isEarly && entries.length === 0 && !hasAdvanced ? earlyPauseMs() : MIN_INTERVAL_MS;
  }

  /** The service then sends the full list. The revocations in the list stay. */
  private startOver(): void {
    this.cursor = undefined;
    this.isCaughtUp = false;
    this.syncedAt = undefined;
    this.list.startOver();
  }

  private delayAfter(error: unknown): number {
    this.failures += 1;
    this.isCaughtUp = false; // The next request does not wait, so that its response ends the outage.
    this.problem = problemOf(error);
    this.httpStatus = error instanceof StatusError ? error.status : undefined;
    if (!(error instanceof StatusError)) return retryDelayMs(this.failures);
    if (error.status === 400 || error.status === 410) this.cursor = undefined; // The service does not know the cursor.
    return Math.max(retryDelayMs(this.failures), retryAfterMs(error.retryAfter, this.clock.now()));
  }

  /** Short enough for an idle feed to stay current: the age counts from a request, and its response takes a third. */
  private waitSeconds(): number {
    return Math.min(MAX_WAIT_SECONDS, Math.floor(this.#options.maxAgeSeconds / 3));
  }

  private parametersOf(waitSeconds: number): Record<string, string> {
    return {
      ...(this.cursor !== undefined && { after: this.cursor }),
      ...(waitSeconds > 0 && { wait: `${waitSeconds}` }),
    };
  }
}

/** Random, so that the processes of an API do not send their requests at the same moment. */
function earlyPauseMs(): number {
  return EARLY_PAUSE_MS * (1 + Math.random());
}
