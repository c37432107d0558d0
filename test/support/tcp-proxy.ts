import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Stands between a service and its database, and takes the database away. */
export interface TcpProxy {
  port: number;
  /** `url` with the proxy in the place of its server. */
  through(url: string): string;
  /** Ends every connection and refuses new ones. */
  cut(): Promise<void>;
  /** Takes connections and bytes, and passes nothing on. */
  freeze(): void;
  /** Serves new connections again; those of before never get an answer, as when another server takes over. */
  failOver(): void;
  /** Serves again; what was held back while frozen is passed on. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const { hostname, port: targetPort } = new URL(target);
  const sockets = new Set<Socket>();
  let frozen = false;
  const server = createServer((client) => {
    const upstream = connect(Number(targetPort || 3306), hostname);
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      if (frozen) socket.pause();
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
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
      frozen = true;
      for (const socket of sockets) socket.pause();
    },
    failOver() {
      frozen = false;
    },
    async restore() {
      frozen = false;
      for (const socket of sockets) socket.resume();
      if (server.listening) return;
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
    close: cut,
  };
}
