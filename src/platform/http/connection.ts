import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { headerValues } from '../request-context/request-context.js';

/** More requests than this without a response end the connection. No known client sends so many. */
const MAX_PIPELINED_REQUESTS = 16;

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

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  finish(): void;
}

/** A connection with its requests that have no complete response yet. Node sends their responses in their order. */
export class Connection {
  private readonly exchanges = new Set<Exchange>();
  /** Its response may be complete before its body. */
  private lastRequest: IncomingMessage | undefined;
  /** Whether the connection has had its last request. Nothing more is handled then (RFC 9112 §9.6). */
  private isEnding = false;

  constructor(private readonly socket: Socket) {
    // node emits no `close` of a response that waits for an earlier one
    socket.once('close', () => {
      for (const exchange of this.exchanges) exchange.finish();
    });
  }

  /**
   * @param finish called once, when the response is complete or the connection has ended
   * @returns false if the request must not be handled
   */
  begin(request: IncomingMessage, response: ServerResponse, finish: () => void): boolean {
    if (this.isEnding || !this.socket.writable) return false;
    if (this.exchanges.size >= MAX_PIPELINED_REQUESTS) {
      this.socket.destroy();
      return false;
    }
    const exchange: Exchange = {
      request,
      response,
      finish: () => void (this.exchanges.delete(exchange) && finish()),
    };
    this.exchanges.add(exchange);
    this.lastRequest = request;
    response.once('close', exchange.finish);
    return true;
  }

  end(): void {
    this.isEnding = true;
  }

  /**
   * Ends the connection, whose input is broken or too slow, with one error response. Earlier requests that arrived
   * completely get their responses first (RFC 9112 §9.3.2).
   *
   * @param errorResponse the whole response, if no handler can write it
   */
  endBroken(broken: BrokenRequest, errorResponse: () => string): void {
    if (this.isEnding) return;
    this.isEnding = true;
    const last = [...this.exchanges].at(-1);
    if (this.lastRequest?.complete === false) {
      if (last?.request !== this.lastRequest) return void this.socket.destroySoon(); // it has its response
      // the handler responds: with this error if it reads the body, else with its own response
      last.response.shouldKeepAlive = false;
      last.request.broken = broken;
      last.request.emit('broken');
      return;
    }
    const write = () => {
      if (this.socket.writable) this.socket.write(errorResponse());
      this.socket.destroySoon();
    };
    if (last) last.response.once('close', write);
    else write();
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

/** Without this bound, 16 KiB of short header lines take 10 times as much memory. */
export const MAX_HEADER_LINES = 100;

/** `uri-host [ ":" port ]` of RFC 9112 §3.2; a registered name may be empty. */
const HOST = /^(?:\[[0-9A-Za-z:.%_~-]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::\d*)?$/;

/** The scheme and the authority of a URL, whose host must not be empty (RFC 9110 §4.2.1). */
const ABSOLUTE = /^([a-z][a-z0-9+.-]*):\/\/(?:[^/?#@]*@)?([^/?#:][^/?#]*)/i;

/** The forms of RFC 9112 §3.2 that have a path. */
function isTarget(target: string): boolean {
  if (target.startsWith('/') || target === '*') return true;
  const [, , host] = ABSOLUTE.exec(target) ?? [];
  return host !== undefined && HOST.test(host);
}

/** Characters that a target must not contain (RFC 9112 §3.2). Express would accept them. */
const INVALID_IN_TARGET = /[#\xa0]/;

/**
 * The path and query of a request target, which may have any authority (RFC 9112 §3.2.2). `*` if the target names no
 * route. Express finds no path in some URLs, and would then respond with a page of its own.
 */
export function routedTarget(target: string): string {
  if (INVALID_IN_TARGET.test(target)) return '*';
  if (target.startsWith('/')) return target;
  const [schemeAndAuthority, scheme = ''] = ABSOLUTE.exec(target) ?? [];
  if (schemeAndAuthority === undefined || !/^https?$/i.test(scheme) || !URL.canParse(target)) return '*';
  const pathAndQuery = target.slice(schemeAndAuthority.length);
  return pathAndQuery.startsWith('/') ? pathAndQuery : `/${pathAndQuery}`;
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
