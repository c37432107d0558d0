import { Injectable } from '@nestjs/common';
import { Limits } from '../oauth/limits.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { keysOfSite } from '../platform/network.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { FeedEntries, MAX_ENTRIES } from './feed-entries.js';

const LIMIT = 'revocations';
/** Sets `Retry-After` while too many entries are in force. The process reads the number again within this time. */
const FULL_RULE = { count: MAX_ENTRIES, seconds: 60 };

/** Limits the revocations of customers and clients (protocol §2.14). Every verifier keeps each one in memory. */
@Injectable()
export class RevocationLimit {
  constructor(
    private readonly limits: Limits,
    private readonly entries: FeedEntries,
  ) {}

  /**
   * Takes one entry of the caller's network.
   *
   * @throws OAuthError 429 if its limit is reached, or too many entries are in force
   */
  take(): CountedRevocation {
    this.assertRoom();
    const counted = this.limits.takeKeys(LIMIT, keysOfSite(requestContext.required().ip));
    return { setEntries: (entries) => counted.countFurther(Math.max(0, entries - 1)) };
  }

  /**
   * A client that has authenticated with its secret has no limit. @throws OAuthError 429 if too many entries are in
   * force
   */
  assertRoom(): undefined {
    if (this.entries.isFull) throw this.limits.rejected(LIMIT, FULL_RULE);
  }

  /** Takes one entry; `undefined` if a limit is reached: then the feed may not have the entries of the request. */
  admit(): CountedRevocation | undefined {
    try {
      return this.take();
    } catch (error) {
      if (error instanceof OAuthError) return undefined;
      throw error;
    }
  }
}

/** A revocation of which one entry was counted. */
export interface CountedRevocation {
  /** Counts the rest when the number of its entries is known, also beyond the limit. */
  setEntries(entries: number): void;
}
