import { Injectable } from '@nestjs/common';
import { keysOfSite } from '../../platform/network.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { RateLimits, secondsToWait } from '../../rate-limit/rate-limits.js';
import { FeedEntries, MAX_ENTRIES } from './feed-entries.js';

const LIMIT = 'revocations';
const CLIENT_LIMIT = 'client_revocations';
/** Sets `Retry-After` while too many entries are in force. The process reads the number again within this time. */
const FULL_RULE = { count: MAX_ENTRIES, seconds: 60 };

/** Limits the revocations of customers and clients (protocol §2.14). Every verifier keeps each one in memory. */
@Injectable()
export class RevocationLimit {
  constructor(
    private readonly limits: RateLimits,
    private readonly entries: FeedEntries,
  ) {}

  /** @throws OAuthError 429 if the limit of the caller's network is reached, or too many entries are in force */
  take(): void {
    if (this.entries.isFull) throw this.limits.rejected(LIMIT, FULL_RULE);
    this.limits.take(LIMIT, keysOfSite(requestContext.required().ip));
  }

  /** The same for a client that has authenticated with its secret, which has a limit of its own. */
  takeForClient(clientId: string): void {
    if (this.entries.isFull) throw this.limits.rejected(CLIENT_LIMIT, FULL_RULE);
    this.limits.take(CLIENT_LIMIT, clientId);
  }

  /** Counts a revocation of the current request, unless a limit is reached. Returns whether the feed may have it. */
  admits(): boolean {
    return secondsToWait(() => this.take()) === 0;
  }
}
