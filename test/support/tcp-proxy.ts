import { startProxyServer } from './proxy-server.js';

/** A proxy between a service and its database that makes the database unreachable. */
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
  let frozen = false;
  const { port, sockets, through, listen, cut } = await startProxyServer(target, (client, upstream) => {
    client.pipe(upstream).pipe(client);
    if (frozen) for (const socket of [client, upstream]) socket.pause();
  });
  return {
    port,
    through,
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
      await listen();
    },
    close: cut,
  };
}
