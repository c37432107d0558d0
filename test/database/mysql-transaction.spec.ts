import { describe, expect, it } from 'vitest';
import { sendTransaction } from '../../src/platform/database/mysql-client.js';
import { rememberIdleLimit } from '../../src/platform/database/mysql-pool.js';
import { writeStatement } from '../../src/platform/database/statement.js';

type Done = (error: Error | null, result: unknown) => void;

/** A connection that records statements, of which one may fail. */
class RecordingConnection {
  readonly sent: string[] = [];

  constructor(
    private readonly failing?: string,
    private readonly errno?: number,
  ) {}

  query(sql: string, done: Done): void {
    this.sent.push(sql);
    done(sql === this.failing ? Object.assign(new Error('a violation'), { errno: this.errno }) : null, {});
  }

  execute(sql: string, _parameters: unknown[], done: Done): void {
    this.query(sql, done);
  }
}

const WRITES = [{ statement: writeStatement('UPDATE one'), parameters: [] }];
const LIMIT = 'SET SESSION wait_timeout = 10';
const NO_LIMIT = 'SET SESSION wait_timeout = DEFAULT';

describe('a transaction of several writes', () => {
  it('has a limit of the time between its statements, which ends with the transaction', async () => {
    const connection = new RecordingConnection();
    await sendTransaction(connection as never, WRITES);
    expect(connection.sent).toEqual([LIMIT, 'START TRANSACTION', 'UPDATE one', 'COMMIT', NO_LIMIT]);
  });

  it('sets no limit on a connection whose server ends idle transactions itself', async () => {
    const connection = new RecordingConnection();
    rememberIdleLimit(connection as never);
    await sendTransaction(connection as never, WRITES);
    expect(connection.sent).toEqual(['START TRANSACTION', 'UPDATE one', 'COMMIT']);
  });

  it.each([1213, 1205])(
    'is rolled back on its connection after error %i, so that the pool keeps the connection',
    async (errno) => {
      const connection = new RecordingConnection('UPDATE one', errno);
      await expect(sendTransaction(connection as never, WRITES)).rejects.toMatchObject({ errno });
      expect(connection.sent).toContain('ROLLBACK');
    },
  );

  it('has no such limit left after it was rolled back', async () => {
    const connection = new RecordingConnection('UPDATE one', 1062);
    await expect(sendTransaction(connection as never, WRITES)).rejects.toThrow('a violation');
    expect(connection.sent.slice(-2)).toEqual(['ROLLBACK', NO_LIMIT]);
  });
});
