import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { incomingRequest, oldestResponse } from '../private-members.js';

export interface BrokenRequest {
  status: number;
  /** For the log: a code of node or its parser, or the name of a rule of the service. */
  reason: string;
}

declare module 'node:http' {
  interface IncomingMessage {
    isHandled?: boolean;
    /** Set, with an event `broken`, when the rest of the body will never come: its header was fine. */
    broken?: BrokenRequest;
  }
}

const STATUS_BY_REASON: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

export function brokenRequestOf(reason: string): BrokenRequest {
  return { status: STATUS_BY_REASON[reason] ?? 400, reason };
}

/**
 * Ends a connection whose input is broken or too slow, with one error response. Earlier requests that arrived
 * completely get their responses first (RFC 9112 §9.3.2). `write` sends the error response where no handler can.
 */
export function endBrokenConnection(socket: Socket, broken: BrokenRequest, lingerMs: number, write: () => void): void {
  const incoming = incomingRequest(socket);
  const request = incoming?.complete ? undefined : incoming; // its header is complete and its body is not
  discardInput(socket);
  afterResponses(socket, request, () => {
    if (!socket.writable) return closeLingering(socket, lingerMs);
    if (!request) return write();
    const response = oldestResponse(socket);
    if (!response || response.headersSent) return closeLingering(socket, lingerMs); // it has its response already
    if (!request.isHandled) return write(); // no handler has been called
    // the handler responds: with this error if it reads the body, else with its own response
    response.shouldKeepAlive = false;
    response.once('close', () => closeLingering(socket, lingerMs));
    request.broken = broken;
    request.emit('broken');
  });
}

export function brokenRequestResponse(status: number, requestId: string, body: string): string {
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `X-Request-Id: ${requestId}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

/**
 * Reads the address of the client while the connection is open. Node has no address of a connection that was reset, but
 * a request of it may be under way.
 *
 * @returns false if the client has reset the connection already: no response would reach the client
 */
export function keepAddress(socket: Socket): boolean {
  const { remoteAddress: value } = socket;
  Object.defineProperty(socket, 'remoteAddress', { value, configurable: true });
  return value !== undefined;
}

/** Calls back once every request that has arrived completely has its response; the broken request does not count. */
function afterResponses(socket: Socket, broken: IncomingMessage | undefined, callback: () => void): void {
  const response = oldestResponse(socket);
  if (!response || response.req === broken) return callback();
  response.once('close', () => {
    if (!socket.destroyed) afterResponses(socket, broken, callback);
  });
}

/** Aborts when the client disconnects before it has got the whole response. */
export function disconnectSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  if (response.destroyed) controller.abort();
  else response.once('close', () => controller.abort());
  return controller.signal;
}

const MAX_DISCARDED_BYTES = 1024 * 1024;

const closing = new WeakSet<Socket>();

/** From now on, nothing that the client sends reaches node's HTTP parser. */
function discardInput(socket: Socket): void {
  let discardedBytes = 0;
  socket.removeAllListeners('data');
  // node's HTTP server stops to read the socket natively when a 'data' listener is added
  socket.on('data', (bytes) => {
    discardedBytes += bytes.length;
    if (discardedBytes > MAX_DISCARDED_BYTES) socket.destroy();
  });
  socket.resume();
}

/**
 * Destroys the connection when the client has closed its side, at the latest after `lingerMs`. An immediate `destroy`
 * would send a reset for unread input, and the client could lose the response (RFC 9112 §9.6).
 */
export function closeLingering(socket: Socket, lingerMs: number, lastBytes = ''): void {
  if (closing.has(socket) || socket.destroyed) return;
  closing.add(socket);
  discardInput(socket);
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  socket.end(lastBytes); // with both sides closed, node destroys the socket
}
