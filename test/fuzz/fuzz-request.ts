import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseResponses, plainRequest, RawConnection } from '../support/raw-http.js';
import type { TestResponse } from '../support/test-service.js';

export type Port = 'public' | 'management';

/** A browser at the authorization page. */
export interface Browser {
  cookies: Map<string, string>;
}

/** A request of a run, before its serialization. */
export interface FuzzRequest {
  port: Port;
  method: string;
  /** Path and query, as in the request line. */
  target: string;
  headers: [name: string, value: string][];
  body: Buffer;
  /** Whether the body is sent in chunks. */
  chunked: boolean;
  /** The mutations of the request, for the report of a violation. */
  notes: string[];
  /** Whether the bearer token was not issued by the service. */
  forgedBearer: boolean;
  /** Whether the `token` in the body was not issued by the service. */
  forgedToken: boolean;
  browser?: Browser;
  /** Removes the tokens and codes that a successful request has used up from the world. */
  spend?: () => void;
}

export function headerOf({ headers }: FuzzRequest, name: string): string | undefined {
  return headers.find(([each]) => each.toLowerCase() === name)?.[1];
}

export function setHeader(request: FuzzRequest, name: string, value: string): void {
  request.headers = request.headers.filter(([each]) => each.toLowerCase() !== name.toLowerCase());
  request.headers.push([name, value]);
}

/** The header that says where the body ends. The raw shapes test incorrect lengths. */
const lengthOf = ({ body, chunked }: FuzzRequest): [name: string, value: string] =>
  chunked ? ['Transfer-Encoding', 'chunked'] : ['Content-Length', `${body.length}`];

/** The body in two parts, if it is sent in chunks. */
function partsOf({ body, chunked }: FuzzRequest): Buffer[] {
  const half = chunked ? Math.floor(body.length / 2) : body.length;
  return [body.subarray(0, half), body.subarray(half)].filter((part) => part.length > 0);
}

export function bytesOf(request: FuzzRequest): Buffer {
  const { method, target, headers, body, chunked } = request;
  const lines = [...headers, lengthOf(request)].map(([name, value]) => `${name}: ${value}`);
  const head = Buffer.from([`${method} ${target} HTTP/1.1`, ...lines, '', ''].join('\r\n'));
  if (!chunked) return Buffer.concat([head, body]);
  const chunks = partsOf(request).flatMap((part) => [`${part.length.toString(16)}\r\n`, part, '\r\n']);
  return Buffer.concat([head, ...[...chunks, '0\r\n\r\n'].map((each) => Buffer.from(each as string))]);
}

/** The connections that requests share. */
const shared = new Agent({ keepAlive: true, maxSockets: 16 });

/** Sends a request on a connection of others. @throws Error if there is no response in time */
export function sendShared(url: string, request: FuzzRequest, timeoutMs: number): Promise<TestResponse> {
  const { method, target: path } = request;
  const headers = [...request.headers, lengthOf(request)] as never;
  const signal = AbortSignal.timeout(timeoutMs);
  return plainRequest(url, { agent: shared, method, path, headers, signal }, partsOf(request));
}

/** If nothing arrives for this time after a response, the fuzzer half-closes the connection. */
const RESPONSE_IDLE_MS = 250;
/** The idle time before the first response to bytes that may be an incomplete request. */
export const FRAGMENT_IDLE_MS = 1_000;
const POLL_INTERVAL_MS = 50;

export interface Exchange {
  responses: TestResponse[];
  /** Whether the service has reset the connection instead of closing it. */
  wasReset: boolean;
}

/**
 * Sends bytes on a separate connection, and reads all responses until the service closes it. The fuzzer half-closes an
 * idle connection, so that the service does not wait for the rest of an incomplete request.
 *
 * @throws Error if the service does not close the connection in time, or does not respond with HTTP
 */
export async function exchangeBytes(
  url: string,
  bytes: Buffer,
  timeoutMs: number,
  idleMs = timeoutMs,
): Promise<Exchange> {
  const connection = (await RawConnection.open(url)).send(bytes);
  const closed = connection.received().then(() => true);
  let [before, silentMs] = ['', 0];
  while (!(await Promise.race([closed, sleep(POLL_INTERVAL_MS)]))) {
    const text = connection.receivedSoFar;
    silentMs = text === before ? silentMs + POLL_INTERVAL_MS : 0;
    before = text;
    const isWaiting = text === '' || text === 'HTTP/1.1 100 Continue\r\n\r\n'; // the response follows
    if (silentMs >= (isWaiting ? idleMs : RESPONSE_IDLE_MS)) connection.end();
    if (silentMs <= timeoutMs) continue;
    connection.abort();
    throw new Error(`not closed in ${timeoutMs} ms after ${JSON.stringify(text)}`);
  }
  const responses = parseResponses(connection.receivedSoFar).filter(({ status }) => status >= 200);
  return { responses, wasReset: connection.wasReset };
}

/** Methods that Node's parser knows, except CONNECT, after which a connection is no longer HTTP. */
const METHODS = /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|PROPFIND|QUERY|M-SEARCH|SUBSCRIBE)$/;
const MAX_HEAD_BYTES = 12_000;
const MAX_BODY_BYTES = 16 * 1024;
/** Two less than the service accepts, which leaves space for the length header. */
const MAX_HEADER_LINES = 98;

/** Whether the service may close the connection after this request. Such a request must not share a connection. */
export function endsItsConnection(request: FuzzRequest): boolean {
  const { method, target, headers, body } = request;
  const texts = [target, ...headers.flat()];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters end the connection
  if (!METHODS.test(method) || texts.some((text) => /[\x00-\x1f\x7f-\uffff]/.test(text))) return true;
  if (!/^(https?:\/\/([\w:-]+@)?[\w.-]+(:\d+)?)?\/[^ ]*$/.test(target)) return true;
  const hosts = headers.filter(([name]) => name.toLowerCase() === 'host');
  if (hosts.length !== 1 || !/^[\w.-]*(:\d*)?$/.test(hosts[0]?.[1] ?? '')) return true;
  if (headers.some(([name]) => !/^[\w!#$%&'*+.^`|~-]+$/.test(name))) return true;
  if (headers.some(([name]) => /^(connection|upgrade|expect|transfer-encoding|content-length)$/i.test(name)))
    return true;
  return (
    headers.length > MAX_HEADER_LINES || body.length > MAX_BODY_BYTES || texts.join('    ').length > MAX_HEAD_BYTES
  );
}
