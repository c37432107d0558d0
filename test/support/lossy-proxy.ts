import { startProxyServer } from './proxy-server.js';

/** A proxy that loses responses of a database: the statement was executed, and the service never learns of it. */
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
  let wanted: { text: string; which: number[] } | undefined;
  let seen = 0;
  let lost = 0;
  const { through, cut } = await startProxyServer(target, (client, upstream) => {
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
  });
  return {
    through,
    loseAnswers(text, which) {
      wanted = { text, which };
      seen = 0;
    },
    get lost() {
      return lost;
    },
    close: cut,
  };
}
