import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP server in front of a database server. */
export interface ProxyServer {
  port: number;
  /** The two sides of each open connection. */
  sockets: Set<Socket>;
  /** `url` with the proxy in place of its server. */
  through(url: string): string;
  /** Listens again after `cut`. */
  listen(): Promise<void>;
  /** Ends every connection and refuses new ones. */
  cut(): Promise<void>;
}

/** Starts a proxy. `pass` connects the two sides of a new connection. */
export async function startProxyServer(
  target: string,
  pass: (client: Socket, upstream: Socket) => void,
): Promise<ProxyServer> {
  const { hostname, port: targetPort } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(targetPort || 3306), hostname);
    pass(client, upstream);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
  });
  let port = 0;
  const listen = async () => {
    if (server.listening) return;
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  };
  await listen();
  return {
    port,
    sockets,
    through: (url) => Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(port) }).href,
    listen,
    async cut() {
      if (!server.listening) return;
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
