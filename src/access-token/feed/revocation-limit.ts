import { Injectable } from '@nestjs/common';
import { OAuthError } from '../../oauth/oauth-error.js';
import { RateLimits } from '../../platform/rate-limit/rate-limits.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { FeedEntries, MAX_ENTRIES } from './feed-entries.js';

const LIMIT = 'revocations';
const CLIENT_LIMIT = 'client_revocations';
/** Sets `Retry-After` while too many entries are in force. The process reads the number again within this time. */
const FULL_RULE = { count: MAX_ENTRIES, seconds: 60 };

/**
 * Limits the revocations that customers and clients cause (protocol §2.14). Each one is an entry of the feed, which
 * every verifier keeps in memory.
 */
@Injectable()
export class RevocationLimit {
  constructor(
    private readonly limits: RateLimits,
    private readonly entries: FeedEntries,
  ) {}

  /**
   * Counts a revocation of the current request.
   *
   * @throws OAuthError 429 if the limit of the caller's network is reached, or too many entries are in force
   */
  take(): void {
    const waitSeconds = this.secondsToWait();
    if (waitSeconds > 0) throw OAuthError.rateLimited(waitSeconds, LIMIT);
  }

  /**
   * Counts a revocation of a client that has authenticated with its secret.
   *
   * @throws OAuthError 429 if the limit of the client is reached, or too many entries are in force
   */
  takeForClient(clientId: string): void {
    const waitSeconds = this.entries.isFull
      ? this.limits.reject(CLIENT_LIMIT, FULL_RULE)
      : this.limits.take(CLIENT_LIMIT, clientId);
    if (waitSeconds > 0) throw OAuthError.rateLimited(waitSeconds, CLIENT_LIMIT);
  }

  /** Counts a revocation of the current request, unless a limit is reached. Returns whether the feed may have it. */
  admits(): boolean {
    return this.secondsToWait() === 0;
  }

  private secondsToWait(): number {
    if (this.entries.isFull) return this.limits.reject(LIMIT, FULL_RULE);
    return this.limits.takeForSite(LIMIT, requestContext.required().ip);
  }
}
