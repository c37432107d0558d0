import { networkOf } from '../rate-limit/network.js';
import { sha256 } from '../secret.js';
import { currentRequest } from './current-request.js';

/**
 * A hash of the network that the current request comes from (an IPv4 address, an IPv6 /64), which is only equal for the
 * same `context`: the database keeps no address. `null` where no address is known.
 */
export function callerNetwork(context: string): string | null {
  const address = currentRequest()?.address;
  return address ? sha256(`${context} ${networkOf(address)}`) : null;
}

/** Whether two hashes may be of one network. One that is unknown counts as the same. */
export function isSameNetwork(one: string | null, other: string | null): boolean {
  return one === null || other === null || one === other;
}
