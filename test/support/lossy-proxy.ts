import { startProxyServer } from './proxy-server.js';

/** A proxy that drops responses of a database after it has executed the statements. */
export interface LossyProxy {
  /** `url` with the proxy in place of its server. */
  through(url: string): string;
  /** Drops the response and the connection of later statements with this text. `which` numbers them from 1. */
  dropResponses(text: string, which: number[]): void;
  /** The number of dropped responses. */
  readonly lost: number;
  close(): Promise<void>;
}

export async function startLossyProxy(target: string): Promise<LossyProxy> {
  let dropped: { text: string; which: number[] } | undefined;
  let seen = 0;
  let lost = 0;
  const { through, cut } = await startProxyServer(target, (client, upstream) => {
    let losesNext = false;
    client.on('data', (bytes) => {
      if (dropped && bytes.includes(dropped.text)) losesNext = dropped.which.includes(++seen);
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      if (!losesNext) return void client.write(bytes);
      lost++;
      client.destroy();
    });
  });
  return {
    through,
    dropResponses(text, which) {
      dropped = { text, which };
      seen = 0;
    },
    get lost() {
      return lost;
    },
    close: cut,
  };
}
