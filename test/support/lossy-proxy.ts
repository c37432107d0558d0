import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Stands between a service and its database, and loses answers: the server has done what it was asked, nobody hears of it. */
export interface LossyProxy {
  /** `url` with the proxy in the place of its server. */
  through(url: string): string;
  /** Loses the answer, with its connection, to those of the coming statements with this text that `which` counts, from 1. */
  loseAnswers(text: string, which: number[]): void;
  /** How many answers were lost. */
  readonly lost: number;
  close(): Promise<void>;
}

export async function startLossyProxy(target: string): Promise<LossyProxy> {
  const { hostname, port: targetPort } = new URL(target);
  const sockets = new Set<Socket>();
  let wanted: { text: string; which: number[] } | undefined;
  let seen = 0;
  let lost = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(targetPort || 3306), hostname);
    let losesNext = false;
    client.on('data', (bytes) => {
      if (wanted && bytes.includes(wanted.text)) losesNext = wanted.which.includes(++seen);
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      if (!losesNext) return void client.write(bytes);
      lost++;
      client.destroy();
    });
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
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    through: (url) => Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(port) }).href,
    loseAnswers(text, which) {
      wanted = { text, which };
      seen = 0;
    },
    get lost() {
      return lost;
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
