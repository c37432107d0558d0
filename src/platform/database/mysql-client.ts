import type { Pool, PoolConnection, QueryError, ResultSetHeader } from 'mysql2';
import { DeadlineExceededError, isUnavailable } from './database-errors.js';
import type { PoolUsage, SqlClient, SqlValue } from './sql-client.js';
import { StatementsOfOneTurn, unionOfInserts, unionOfSelects } from './statements-of-one-turn.js';

/** What mysql2 keeps of its pool, and tells nobody. */
interface PoolState {
  config: { connectionLimit: number };
  _allConnections: { length: number };
  _freeConnections: { length: number };
  _connectionQueue: { length: number };
}

/**
 * Prepared statements over a mysql2 pool, each with a deadline that covers the wait for a connection too. The pool's own
 * time-outs do not: before a frozen server its callers would wait for ever.
 */
export class MysqlClient implements SqlClient {
  readonly ignore = 'IGNORE';
  readonly now = 'CURRENT_TIMESTAMP(3)';
  private refused = 0;
  private readonly selects = new StatementsOfOneTurn<unknown[]>({
    ...unionOfSelects,
    send: (sql, parameters) => this.execute(sql, parameters) as Promise<unknown[]>,
  });
  private readonly inserts = new StatementsOfOneTurn<number>({
    ...unionOfInserts,
    send: (sql, parameters) => this.change(sql, parameters),
  });

  constructor(
    private readonly pool: Pool,
    private readonly deadline: number,
  ) {}

  millisecondsSince(column: string): string {
    return `(TIMESTAMPDIFF(MICROSECOND, ${column}, CURRENT_TIMESTAMP(3)) DIV 1000)`;
  }

  deleteInOrder(table: string, where: string, order: string, limit: number): string {
    return `DELETE FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT ${limit}`;
  }

  select(sql: string, parameters: SqlValue[]): Promise<unknown[]> {
    return this.selects.send(sql, parameters);
  }

  async insert(sql: string, parameters: SqlValue[]): Promise<void> {
    await this.inserts.send(sql, parameters);
  }

  async change(sql: string, parameters: SqlValue[]): Promise<number> {
    return ((await this.execute(sql, parameters)) as ResultSetHeader).affectedRows;
  }

  usage(): PoolUsage {
    const { config, _allConnections, _freeConnections, _connectionQueue } = this.pool as unknown as PoolState;
    const idle = _freeConnections.length;
    const inUse = _allConnections.length - idle;
    return { inUse, idle, limit: config.connectionLimit, waiting: _connectionQueue.length, refused: this.refused };
  }

  private execute(sql: string, parameters: SqlValue[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let connection: PoolConnection | undefined;
      let late = false;
      let isOver = false;
      let answered = false;
      const giveUp = () => {
        if (answered) return;
        late = true;
        connection?.destroy(); // what it still answers, nobody would read
        reject(new DeadlineExceededError(this.deadline));
      };
      // after the sockets were read once more: a process that stood still finds there what came meanwhile
      const timer = setTimeout(() => {
        isOver = true;
        setImmediate(giveUp);
      }, this.deadline);
      const answer = () => {
        answered = true;
        clearTimeout(timer);
      };
      this.pool.getConnection((refused, acquired) => {
        if (late || (isOver && acquired)) return acquired?.release(); // nothing is begun that nobody would wait for
        if (refused) {
          if (refused.message.startsWith('Queue limit')) this.refused++;
          answer();
          return reject(refused);
        }
        connection = acquired;
        connection.execute(sql, parameters, (failed: QueryError | null, result: unknown) => {
          if (late) return;
          answer();
          // a server that refuses now, as a primary that was demoted, is not asked again on this connection
          if (failed && isUnavailable(failed)) acquired.destroy();
          else acquired.release();
          if (failed) reject(failed);
          else resolve(result);
        });
      });
    });
  }
}
