import { Injectable } from '@nestjs/common';
import type { LimitDeclarations } from '../platform/configuration/rate-limit-rule.js';
import { keysOfIp, type LimitKey } from '../platform/network.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { sha256 } from '../platform/secret.js';
import { withoutTrailingSpaces } from '../platform/text-forms.js';
import { type CountedRequest, RateLimits } from '../rate-limit/rate-limits.js';

/**
 * The limits that an extension declares in `limits`. `Declared` is the type of that declaration, so that only its names
 * compile: `Limits<typeof DEVICE_LIMITS>`.
 */
@Injectable()
export class Limits<Declared extends LimitDeclarations = Record<never, never>> {
  constructor(private readonly limits: RateLimits) {}

  /**
   * Counts an event for a key, such as the id of a customer. The key may come from the caller and have any length.
   *
   * @returns the counted event. `giveBack()` removes it from the count, for example if the work failed
   * @throws OAuthError 429 `temporarily_unavailable` with `Retry-After` if the limit is reached
   */
  take(limit: keyof Declared & string, key: string): CountedRequest {
    return this.takeAll(limit, [{ key: keyOf(key), factor: 1 }]);
  }

  /**
   * Counts an event for the caller's network, or for a key in this network. An IPv6 address counts in its /64, in its
   * /56 with 8 times the limit, and in its /48 with 32 times the limit.
   *
   * @returns the counted event, as `take` does
   * @throws OAuthError 429 `temporarily_unavailable` with `Retry-After` if the limit is reached
   */
  takeForNetwork(limit: keyof Declared & string, key = ''): CountedRequest {
    return this.takeAll(limit, keysOfIp(requestContext.required().ip, key && keyOf(key)));
  }

  private takeAll(limit: string, keys: LimitKey[]): CountedRequest {
    if (!this.limits.isDeclared(limit))
      throw new Error(`${limit}: no limit has this name; declare it in limits of the Extension`);
    return this.limits.take(limit, keys);
  }
}

/** Keys that differ only in the spaces at their end are one key. */
function keyOf(key: string): string {
  return sha256(withoutTrailingSpaces(key));
}
