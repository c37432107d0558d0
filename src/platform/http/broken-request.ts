import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';

/** The JSON body for bytes that never became a request, and so have no controller to answer them. */
export type BrokenRequestBody = (status: number, requestId: string) => string;

/** What node keeps of the answer under way on a socket. */
export type HttpSocket = Socket & { _httpMessage?: { _headerSent?: boolean } };

const STATUS_OF: Record<string, [number, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout'],
};

/**
 * Answers what cannot be read as a request, and closes its connection.
 *
 * @returns the answer's status and id; `undefined` where nothing can be answered any more
 */
export function refuseBrokenRequest(
  error: NodeJS.ErrnoException,
  socket: HttpSocket,
  bodyFor: BrokenRequestBody,
): { id: string; status: number } | undefined {
  // bytes written into an answer under way would corrupt it
  if (error.code === 'ECONNRESET' || !socket.writable || socket._httpMessage?._headerSent) {
    socket.destroy();
    return undefined;
  }
  const [status, phrase] = STATUS_OF[error.code ?? ''] ?? [400, 'Bad Request'];
  const id = randomUUID();
  const body = bodyFor(status, id);
  socket.end(
    [
      `HTTP/1.1 ${status} ${phrase}`,
      'Content-Type: application/json; charset=utf-8',
      'Cache-Control: no-store',
      'X-Content-Type-Options: nosniff',
      `X-Request-Id: ${id}`,
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
  return { id, status };
}
