import { sha256 } from '../secret.js';
import { requestContext } from './request-context.js';

/**
 * A hash of the network of the current request, so that the database stores no IP address. Hashes can only be compared
 * for the same `context`. `null` where no IP address is known.
 */
export function callerNetwork(context: string): string | null {
  const request = requestContext.current();
  return request?.ip ? sha256(`${context} ${request.network}`) : null;
}

/** Whether two hashes may be of one network. An unknown network counts as the same. */
export function isSameNetwork(one: string | null, other: string | null): boolean {
  return one === null || other === null || one === other;
}
