import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A proxy between a service and its database that makes the database unreachable. */
export interface TcpProxy {
  port: number;
  /** `url` with the proxy in place of its server. */
  through(url: string): string;
  /** Ends every connection and refuses new ones. */
  cut(): Promise<void>;
  /** Accepts connections and bytes, but forwards nothing. */
  freeze(): void;
  /** Serves new connections again. Older connections never get a response, as after a failover. */
  failOver(): void;
  /** Serves again and forwards the bytes that arrived while the proxy was isFrozen. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

/** Connects the two sides of a new connection. */
type Pass = (client: Socket, upstream: Socket) => void;

const forwardAll: Pass = (client, upstream) => void client.pipe(upstream).pipe(client);

export async function startTcpProxy(target: string, pass = forwardAll): Promise<TcpProxy> {
  const { hostname, port: targetPort } = new URL(target);
  const sockets = new Set<Socket>();
  let isFrozen = false;
  const server = createServer((client) => {
    const upstream = connect(Number(targetPort || 3306), hostname);
    pass(client, upstream);
    for (const socket of [client, upstream]) {
      if (isFrozen) socket.pause();
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const cut = async () => {
    if (!server.listening) return;
    server.close();
    for (const socket of sockets) socket.destroy();
    await once(server, 'close');
  };
  return {
    port,
    through: (url) => Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(port) }).href,
    cut,
    freeze() {
      isFrozen = true;
      for (const socket of sockets) socket.pause();
    },
    failOver() {
      isFrozen = false;
    },
    async restore() {
      isFrozen = false;
      for (const socket of sockets) socket.resume();
      if (!server.listening) await once(server.listen(port, '127.0.0.1'), 'listening');
    },
    close: cut,
  };
}
