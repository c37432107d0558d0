import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { oldestResponse } from '../private-members.js';

/** Calls back once every request that has arrived completely has its response; the broken request does not count. */
export function afterResponses(socket: Socket, broken: IncomingMessage | undefined, callback: () => void): void {
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

/** A client that sends more than this after its last response is cut off. */
const MAX_DISCARDED_BYTES = 1024 * 1024;

const closing = new WeakSet<Socket>();

/** From now on, nothing that the client sends reaches node's HTTP parser. The bytes are read and discarded. */
export function discardInput(socket: Socket): void {
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
 * Sends the last bytes, closes our side, and destroys the connection when the client has closed its own side, at the
 * latest after `lingerMs`. If the connection were destroyed immediately, the kernel would send a reset for unread
 * input, and the client could lose the response (RFC 9112 §9.6).
 */
export function closeLingering(socket: Socket, lingerMs: number, lastBytes = ''): void {
  if (closing.has(socket) || socket.destroyed) return;
  closing.add(socket);
  discardInput(socket);
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  socket.end(lastBytes); // with both sides closed, node destroys the socket
}
