import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

/** The service's side of each connection, by the client's port. */
const sockets = new Map<number | undefined, Socket>();
subscribe('net.server.socket', (message) => {
  const { socket } = message as { socket: Socket };
  sockets.set(socket.remotePort, socket);
});

/**
 * Whether a service in this process has destroyed its side of the connection with this client's port. A client that
 * keeps its own side open cannot see that without sending something.
 */
export function isDestroyedByService(clientPort: number | undefined): boolean {
  return sockets.get(clientPort)?.destroyed ?? false;
}
