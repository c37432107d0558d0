import { Injectable } from '@nestjs/common';
import { keysOfSite, type LimitKey } from '../../platform/network.js';
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

  /**
   * Takes one entry of the caller's network.
   *
   * @throws OAuthError 429 if its limit is reached, or too many entries are in force
   */
  take(): CountedRevocation {
    return this.takeFrom(LIMIT, keysOfSite(requestContext.required().ip));
  }

  /** The same for a client that has authenticated with its secret, which has a limit of its own. */
  takeForClient(clientId: string): CountedRevocation {
    return this.takeFrom(CLIENT_LIMIT, clientId);
  }

  /** The same, but `undefined` if a limit is reached: then the feed may not have the entries of the request. */
  admit(): CountedRevocation | undefined {
    let counted: CountedRevocation | undefined;
    secondsToWait(() => {
      counted = this.take();
    });
    return counted;
  }

  private takeFrom(limit: string, keys: string | LimitKey[]): CountedRevocation {
    if (this.entries.isFull) throw this.limits.rejected(limit, FULL_RULE);
    const counted = this.limits.take(limit, keys);
    return { setEntries: (entries) => counted.countFurther(Math.max(0, entries - 1)) };
  }
}

/** A revocation of which one entry was counted. */
export interface CountedRevocation {
  /** Counts the rest when the number of its entries is known, also beyond the limit. */
  setEntries(entries: number): void;
}
