import type { Socket } from 'node:net';
import { errorPacket, PacketReader, StatementTexts } from './mysql-packets.js';
import { startTcpProxy } from './tcp-proxy.js';

/**
 * What a statement gets in place of its response. `rolledBack`: the transaction was rolled back, and the session goes
 * on. `executed` and `lost`: the caller cannot know whether the database has executed the statement. `broken`: it was
 * not executed, and the session executes nothing any more.
 */
export interface InjectedError {
  errno: number;
  message?: string;
  outcome: 'rolledBack' | 'executed' | 'lost' | 'broken';
}

/** A proxy that drops responses of a database after it has executed the statements, or replaces them by errors. */
export interface LossyProxy {
  /** `url` with the proxy in place of its server. */
  through(url: string): string;
  /** Drops the response and the connection of later statements with this text. `which` numbers them from 1. */
  dropResponses(text: string, which: number[]): void;
  /** Drops the response of the next statement with this text, and all that follow on its connection, which stays. */
  silenceAt(text: string): void;
  /** Fails later statements with an error, COMMIT included, if `isFailed` says so. */
  failStatements(error: InjectedError, isFailed: (sql: string) => boolean): void;
  /** The number of dropped responses. */
  readonly lost: number;
  close(): Promise<void>;
}

export async function startLossyProxy(target: string): Promise<LossyProxy> {
  let dropped: { text: string; which: number[]; isSilent: boolean } | undefined;
  let injection: { error: InjectedError; isFailed: (sql: string) => boolean } | undefined;
  let seen = 0;
  let lost = 0;

  function pass(client: Socket, upstream: Socket): void {
    const packets = new PacketReader();
    const texts = new StatementTexts();
    let losesNext = false;
    /** Replaces the response of the statement that was sent last. */
    let error: InjectedError | undefined;
    const send = (packet: Buffer): void => {
      const sql = texts.sent(packet);
      if (error?.outcome !== 'broken')
        error = sql !== undefined && injection?.isFailed(sql) ? injection.error : undefined;
      if (error?.outcome === 'lost' || error?.outcome === 'broken') client.write(errorPacket(error));
      else upstream.write(error?.outcome === 'rolledBack' ? texts.packetOf('ROLLBACK') : packet);
    };
    client.on('data', (bytes) => {
      if (dropped && bytes.includes(dropped.text)) losesNext = dropped.which.includes(++seen);
      for (const packet of packets.read(bytes)) send(packet);
    });
    upstream.on('data', (bytes) => {
      if (losesNext) {
        lost++;
        if (dropped?.isSilent) return;
        return void client.destroy();
      }
      if (!error) {
        texts.received(bytes);
        return void client.write(bytes);
      }
      if (error.outcome !== 'lost') client.write(errorPacket(error));
      error = { ...error, outcome: 'lost' }; // a response in several parts is replaced once
    });
  }

  const { through, close } = await startTcpProxy(target, pass);
  return {
    through,
    dropResponses(text, which) {
      dropped = { text, which, isSilent: false };
      seen = 0;
    },
    silenceAt(text) {
      dropped = { text, which: [1], isSilent: true };
      seen = 0;
    },
    failStatements(error, isFailed) {
      injection = { error, isFailed };
    },
    get lost() {
      return lost;
    },
    close,
  };
}
