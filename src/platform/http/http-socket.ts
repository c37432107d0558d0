import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A connection of node's HTTP server, with two fields that node has had since version 0.x and does not document. */
export type HttpSocket = Socket & {
  /** The oldest response that is not finished. */
  _httpMessage?: (ServerResponse & { req: IncomingMessage }) | null;
  /** `incoming` is the request whose body is being read, or the last one that was read. */
  parser?: { incoming: IncomingMessage | null } | null;
};

/** Calls back once every request that has arrived completely has its response; the broken request does not count. */
export function afterResponses(socket: HttpSocket, broken: IncomingMessage | undefined, callback: () => void): void {
  const response = socket._httpMessage;
  if (!response || response.req === broken) return callback();
  response.once('close', () => {
    if (!socket.destroyed) afterResponses(socket, broken, callback);
  });
}
