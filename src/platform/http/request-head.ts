import type { IncomingMessage } from 'node:http';
import { MAX_HEADER_LINES } from './connection-limits.js';

/** `uri-host [ ":" port ]` of RFC 9112 §3.2; a registered name may be empty. */
const HOST = /^(?:\[[0-9A-Za-z:.%_~-]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::\d*)?$/;

/**
 * Why the head of a request must get 400 or 431; `undefined` if it is acceptable. Node's parser leaves these rules to
 * its user. An empty Host is acceptable: the service is known by AUTH_URL and never reads the field (RFC 9112 §3.3).
 */
export function headViolation(request: IncomingMessage): string | undefined {
  const { httpVersion, headers, rawHeaders } = request;
  // HTTP/0.9 has no version in its request line; node's parser takes HTTP/2.0 in the syntax of HTTP/1.1
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 'HTTP version';
  if (rawHeaders.length > 2 * MAX_HEADER_LINES) return 'HPE_HEADER_OVERFLOW'; // node 20 leaves out what is beyond
  const { host } = headers;
  if (host === undefined) return httpVersion === '1.1' ? 'no Host' : undefined;
  if (!HOST.test(host)) return 'invalid Host';
  return isRepeated('host', rawHeaders) ? 'more than one Host' : undefined;
}

/** Node keeps only the first Host in `headers`. */
function isRepeated(name: string, rawHeaders: string[]): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const each = rawHeaders[index] as string;
    if (each.length === name.length && each.toLowerCase() === name) count++;
  }
  return count > 1;
}
