import { sha256 } from '../secret.js';
import { requestContext } from './request-context.js';

/** A hash, so that the database stores no IP address. Only hashes of one `context` can be compared. */
export function callerNetwork(context: string): string | null {
  const request = requestContext.current();
  return request?.ip ? sha256(`${context} ${request.network}`) : null;
}

/** An unknown network is another network than any other. */
export function isSameNetwork(one: string | null, other: string | null): boolean {
  return one !== null && one === other;
}
