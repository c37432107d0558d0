import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { incomingRequest, oldestResponse } from '../private-members.js';
import { afterResponses, closeLingering, discardInput } from './http-socket.js';

/** Why a request cannot be handled, or not completely. */
export interface BrokenRequest {
  status: number;
  /** For the log: a code of node or its parser, or the name of a rule of the service. */
  reason: string;
}

declare module 'node:http' {
  interface IncomingMessage {
    /** Set when the request is handed to the application. */
    isHandled?: boolean;
    /** Set, with an event `broken`, when the rest of the body will never come: its header was fine. */
    broken?: BrokenRequest;
  }
}

const STATUS_BY_REASON: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

/** Maps the `code` of node's error, or the name of a rule, to a status. */
export function brokenRequestOf(reason: string): BrokenRequest {
  return { status: STATUS_BY_REASON[reason] ?? 400, reason };
}

/**
 * Ends a connection whose input is broken or too slow, with one error response. The rest of the input is discarded
 * immediately. Earlier requests that arrived completely get their responses first (RFC 9112 §9.3.2).
 *
 * @param write sends the error response where no handler can, and closes the connection
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

/** The text of an error response outside node's `ServerResponse`. */
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
