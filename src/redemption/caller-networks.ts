import { Injectable } from '@nestjs/common';
import { SigningKeys } from '../access-token/signing-keys.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { derivedSecret } from '../platform/secret.js';

/** A second use from the same network within this time is a duplicate, not a replay (protocol §3.7). */
const DUPLICATE_WINDOW_MS = 2_000;

const PURPOSE = 'network of a caller';

/** Recognizes the network of an earlier caller without storing it. */
@Injectable()
export class CallerNetworks {
  constructor(private readonly keys: SigningKeys) {}

  /**
   * An HMAC of the caller's network, because an IPv4 address could be found from a hash by trying all addresses. After
   * a key rotation, each network counts as another one.
   *
   * @param context only values of one context can be compared
   * @returns `null` outside of a request
   */
  current(context: string): string | null {
    const request = requestContext.current();
    if (!request) return null;
    return derivedSecret(this.keys.derivedSecret(PURPOSE), `${context} ${request.network}`);
  }
}

/** When and where a code was redeemed. */
export interface Redemption {
  /** Milliseconds since the redemption, by the clock of the database; `null` if the code is not redeemed. */
  redeemed_for_ms: number | null;
  redeemed_network: string | null;
}

/**
 * Whether a further use of a code is a duplicate of the first one. An unknown network is another one than any other.
 * The time is negative if the SELECT began before the redemption, for example because it waited for another node, or if
 * the clock of the database was set back. Set back by more than the window, a further use is a replay.
 */
export function isDuplicateUse({ redeemed_for_ms, redeemed_network }: Redemption, network: string | null): boolean {
  const isSoon = redeemed_for_ms !== null && Math.abs(redeemed_for_ms) <= DUPLICATE_WINDOW_MS;
  return isSoon && network !== null && network === redeemed_network;
}
