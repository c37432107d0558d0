import type { Browser } from './world.js';

export type Port = 'public' | 'management';

/** One request of a run, before it is bytes. */
export interface FuzzRequest {
  port: Port;
  method: string;
  /** Path and query, as they stand in the first line. */
  target: string;
  headers: [name: string, value: string][];
  body: Buffer;
  /** Whether the body is sent in chunks. */
  chunked: boolean;
  /** What was done to it, for whoever reads a failure. */
  notes: string[];
  /** The bearer is none that the service has issued. */
  forgedBearer: boolean;
  /** The `token` in the body is none that the service has issued. */
  forgedToken: boolean;
  /** The agent's browser that sends it, if one does. */
  browser?: Browser;
  /** Takes what the request has used up out of the world, when it was answered with success. */
  spend?: () => void;
}

export function headerOf({ headers }: FuzzRequest, name: string): string | undefined {
  return headers.find(([each]) => each.toLowerCase() === name)?.[1];
}

/** Sets a header in the place of those of that name. */
export function setHeader(request: FuzzRequest, name: string, value: string): void {
  request.headers = request.headers.filter(([each]) => each.toLowerCase() !== name.toLowerCase());
  request.headers.push([name, value]);
}

/** The request on the wire. Its length is told rightly: lies about it are the raw shapes' business. */
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

/** Methods that node's parser knows, but for CONNECT, after which a connection is no longer HTTP. */
const METHODS = /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|PROPFIND|QUERY|M-SEARCH|SUBSCRIBE)$/;
const LARGEST_HEAD = 12_000;
const LARGEST_BODY = 16 * 1024;
/** Two less than the service accepts, for the header of the length. */
const MAX_HEADER_LINES = 98;

/** Whether it may end its connection, so that it must not share one with others. */
export function endsItsConnection(request: FuzzRequest): boolean {
  const { method, target, headers, body } = request;
  const texts = [target, ...headers.flat()];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what ends it
  if (!METHODS.test(method) || texts.some((text) => /[\x00-\x1f\x7f-\uffff]/.test(text))) return true;
  if (!/^(https?:\/\/[\w.:@-]+)?\/[^ ]*$/.test(target)) return true;
  const hosts = headers.filter(([name]) => name.toLowerCase() === 'host');
  if (hosts.length !== 1 || !/^[\w.-]*(:\d*)?$/.test(hosts[0]?.[1] ?? '')) return true;
  if (headers.some(([name]) => !/^[\w!#$%&'*+.^`|~-]+$/.test(name))) return true;
  if (headers.some(([name]) => /^(connection|upgrade|expect|transfer-encoding|content-length)$/i.test(name)))
    return true;
  return headers.length > MAX_HEADER_LINES || body.length > LARGEST_BODY || texts.join('    ').length > LARGEST_HEAD;
}
