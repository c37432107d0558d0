import type { Browser } from './world.js';

export type Port = 'public' | 'management';

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
  /** The browser of an agent that sends the request. */
  browser?: Browser;
  /** Removes the tokens and codes that a successful request has used up from the world. */
  spend?: () => void;
}

export function headerOf({ headers }: FuzzRequest, name: string): string | undefined {
  return headers.find(([each]) => each.toLowerCase() === name)?.[1];
}

/** Replaces all headers of this name. */
export function setHeader(request: FuzzRequest, name: string, value: string): void {
  request.headers = request.headers.filter(([each]) => each.toLowerCase() !== name.toLowerCase());
  request.headers.push([name, value]);
}

/** The bytes of a request, with a correct length. The raw shapes test incorrect lengths. */
export function bytesOf({ method, target, headers, body, chunked }: FuzzRequest): Buffer {
  const length = chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`;
  const head = [`${method} ${target} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`), length, '', ''];
  return Buffer.concat([Buffer.from(head.join('\r\n')), chunked ? inChunks(body) : body]);
}

function inChunks(body: Buffer): Buffer {
  const half = Math.floor(body.length / 2);
  const parts = [body.subarray(0, half), body.subarray(half)].filter((part) => part.length > 0);
  const chunks = parts.flatMap((part) => [Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]);
  return Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]);
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
  if (!/^(https?:\/\/[\w.:@-]+)?\/[^ ]*$/.test(target)) return true;
  const hosts = headers.filter(([name]) => name.toLowerCase() === 'host');
  if (hosts.length !== 1 || !/^[\w.-]*(:\d*)?$/.test(hosts[0]?.[1] ?? '')) return true;
  if (headers.some(([name]) => !/^[\w!#$%&'*+.^`|~-]+$/.test(name))) return true;
  if (headers.some(([name]) => /^(connection|upgrade|expect|transfer-encoding|content-length)$/i.test(name)))
    return true;
  return (
    headers.length > MAX_HEADER_LINES || body.length > MAX_BODY_BYTES || texts.join('    ').length > MAX_HEAD_BYTES
  );
}
