import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/**
 * Request ids that are accepted from callers: long enough for a UUID or a trace id, too short for markup or a log line.
 */
const REQUEST_ID = /^[A-Za-z0-9_.-]{8,64}$/;
/** `traceparent` of W3C Trace Context. Its second part is the trace id. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The id of a request: from `X-Request-Id`, else the id of its trace, else a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const { 'x-request-id': given, traceparent } = headers;
  if (typeof given === 'string' && REQUEST_ID.test(given)) return given;
  return (typeof traceparent === 'string' && TRACEPARENT.exec(traceparent)?.[1]) || randomUUID();
}
