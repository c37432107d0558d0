import { type IncomingMessage, STATUS_CODES } from 'node:http';
import { headerValues } from '../request-context/request-context.js';
import { MAX_HEADER_LINES } from './connection-limits.js';

export interface BrokenRequest {
  status: number;
  /** For the log: a code of node or its parser, or the name of a rule of the service. */
  reason: string;
}

declare module 'node:http' {
  interface IncomingMessage {
    /** Set, with an event `broken`, when the rest of the body will never come: its header was fine. */
    broken?: BrokenRequest;
  }
}

const STATUS_BY_REASON: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

export function brokenRequestOf(reason: string): BrokenRequest {
  return { status: STATUS_BY_REASON[reason] ?? 400, reason };
}

/** A whole response, for a connection without a request that could have one. */
export function brokenRequestResponse(status: number, requestId: string, body: string): string {
  const lines = Object.entries(brokenRequestHeaders(requestId, body)).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n');
}

export function brokenRequestHeaders(requestId: string, body: string): Record<string, string | number> {
  return {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': requestId,
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
}

/** `uri-host [ ":" port ]` of RFC 9112 §3.2; a registered name may be empty. */
const HOST = /^(?:\[[0-9A-Za-z:.%_~-]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::\d*)?$/;

const AUTHORITY = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#]+)/i;

/**
 * The forms of RFC 9112 §3.2 that have a path. The host of a URL must not be empty (RFC 9110 §4.2.1). Express finds no
 * path in some URLs without a valid host.
 */
function isTarget(target: string): boolean {
  if (target.startsWith('/') || target === '*') return true;
  const [, authority] = AUTHORITY.exec(target) ?? [];
  return authority !== undefined && HOST.test(authority);
}

/** Rules that node's parser does not enforce. An empty Host is valid: the service never reads it (RFC 9112 §3.3). */
export function headViolation(request: IncomingMessage): string | undefined {
  const { httpVersion, headers, rawHeaders, url = '' } = request;
  // HTTP/0.9 has no version in its request line; node's parser takes HTTP/2.0 in the syntax of HTTP/1.1
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 'HTTP version';
  if (rawHeaders.length > 2 * MAX_HEADER_LINES) return 'HPE_HEADER_OVERFLOW'; // node 20 leaves out what is beyond
  if (!isTarget(url)) return 'invalid target';
  const { host } = headers;
  if (host === undefined) return httpVersion === '1.1' ? 'no Host' : undefined;
  if (!HOST.test(host)) return 'invalid Host';
  // `headers` has only the first Host
  return headerValues(request, 'host').length > 1 ? 'more than one Host' : undefined;
}
