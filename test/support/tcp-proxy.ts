import { startProxyServer } from './proxy-server.js';

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

export async function startTcpProxy(target: string): Promise<TcpProxy> {
  let isFrozen = false;
  const { port, sockets, through, listen, cut } = await startProxyServer(target, (client, upstream) => {
    client.pipe(upstream).pipe(client);
    if (isFrozen) for (const socket of [client, upstream]) socket.pause();
  });
  return {
    port,
    through,
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
      await listen();
    },
    close: cut,
  };
}
