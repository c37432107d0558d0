import mysql, { type Pool, type PoolConnection, type PoolOptions } from 'mysql2';
import type { DataSource } from 'typeorm';
import { BoundedQueue, QueueFullError } from '../bounded-queue.js';
import {
  DeadlineExceededError,
  explain,
  leavesSessionIntact,
  STATEMENT_TIMEOUT_MS,
  withTimeout,
} from './database-errors.js';
import type { DatabaseUrlFile } from './database-url-file.js';
import type { MysqlServer } from './mysql-server.js';

/** Not the server's, which may have NO_BACKSLASH_ESCAPES or ANSI_QUOTES: then a value could change a statement. */
const SQL_MODE = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ONLY_FULL_GROUP_BY,ERROR_FOR_DIVISION_BY_ZERO';

/** MariaDB ends a transaction whose process is lost; MySQL has no such variable, see `sendTransaction`. */
const IDLE_LIMIT = 'idle_write_transaction_timeout = 10';

const SETTINGS = [
  // mysql2 writes the values of a transaction into its statements, with a backslash before each quote
  `sql_mode = '${SQL_MODE}'`,
  'TRANSACTION ISOLATION LEVEL READ COMMITTED',
  // on Galera and Group Replication, a read sees the commits of all nodes; other servers do not know the variables
  'wsrep_sync_wait = 3',
  "group_replication_consistency = 'BEFORE'",
  IDLE_LIMIT,
  'innodb_lock_wait_timeout = 2',
  "time_zone = '+00:00'",
  // a server may override the character set that its client names, and would then damage texts
  'character_set_client = utf8mb4, character_set_connection = utf8mb4, character_set_results = utf8mb4',
];

const UNKNOWN_VARIABLE_ERRNO = 1193;

/** Connections with `idle_write_transaction_timeout` of MariaDB. Their transactions need no limit of their own. */
const withIdleLimit = new WeakSet<object>();

export function rememberIdleLimit(connection: PoolConnection): void {
  withIdleLimit.add(connection);
}

export function hasIdleLimit(connection: PoolConnection): boolean {
  return withIdleLimit.has(connection);
}

type Acquired = (error: Error | null, connection?: PoolConnection) => void;

const START_TIMEOUT_MS = 10_000;

const MAX_WAITERS_PER_CONNECTION = 100;

/** The connections to a server, also those of TypeORM. Each one has the settings above before its first statement. */
export class MysqlPool {
  private readonly opened = new Set<PoolConnection>();
  /** Connections in use, each with the function that ends its turn. */
  private readonly used = new Map<PoolConnection, () => void>();
  /** The settings of each connection that is new. */
  private readonly settings = new WeakMap<PoolConnection, Promise<void>>();
  private readonly options: PoolOptions;
  /**
   * A caller with a turn uses a connection or opens one. So the queue of mysql2, which no caller can leave, stays
   * empty.
   */
  private readonly turns: BoundedQueue;
  private rejected = 0;
  private pool: Pool;

  constructor(
    options: PoolOptions,
    private readonly file?: DatabaseUrlFile,
  ) {
    this.options = { ...options, ...file?.server };
    const maxRunning = options.connectionLimit as number;
    this.turns = new BoundedQueue({ maxRunning, maxWaiting: MAX_WAITERS_PER_CONNECTION * maxRunning });
    this.pool = this.open();
    file?.follow(this);
  }

  /** For TypeORM, during a start. */
  getConnection(done: Acquired): void {
    this.acquire(START_TIMEOUT_MS).then((connection) => done(null, connection), done);
  }

  /** @throws QueueFullError; DeadlineExceededError after `timeoutMs`; the caller then waits no more */
  async acquire(timeoutMs: number): Promise<PoolConnection> {
    const until = performance.now() + timeoutMs;
    const endTurn = await this.waitForTurn(timeoutMs);
    const connecting = this.connect(endTurn);
    try {
      const connection = await withTimeout(connecting, until - performance.now(), timeoutMs);
      // a timer of Node may end before `until`
      if (performance.now() < until) return connection;
      throw new DeadlineExceededError(timeoutMs);
    } catch (error) {
      connecting.then(
        (connection) => connection.release(),
        () => undefined,
      );
      throw error;
    }
  }

  private async waitForTurn(timeoutMs: number): Promise<() => void> {
    try {
      return await this.turns.begin(timeoutMs);
    } catch (error) {
      if (!(error instanceof QueueFullError)) throw new DeadlineExceededError(timeoutMs, ': no connection was free');
      this.rejected++;
      throw error;
    }
  }

  /** Ends by itself, because opening a connection and its settings have time limits. */
  private async connect(endTurn: () => void): Promise<PoolConnection> {
    const { pool } = this;
    let connection: PoolConnection;
    try {
      connection = await new Promise((resolve, reject) => {
        pool.getConnection((error, opened) => (error ? reject(error) : resolve(opened)));
      });
    } catch (error) {
      if (pool !== this.pool) return this.connect(endTurn); // the service moved to another server meanwhile
      endTurn();
      explain(error as Error);
      void this.file?.check();
      throw error;
    }
    this.used.set(connection, endTurn);
    try {
      await this.settings.get(connection);
      this.settings.delete(connection);
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  end(done: (error?: NodeJS.ErrnoException | null) => void): void {
    this.pool.end(done);
  }

  usage() {
    const { opened, used, turns, rejected } = this;
    const limit = this.options.connectionLimit as number;
    return { limit, inUse: used.size, idle: opened.size - used.size, waiting: turns.waiting, rejected };
  }

  /** Opens a connection to another server. */
  connectTo(server: MysqlServer): Promise<void> {
    return new Promise((resolve, reject) => {
      const connection = mysql.createConnection({ ...this.options, ...server });
      connection.on('error', reject);
      connection.connect((error) => {
        connection.destroy();
        if (error) reject(error);
        else resolve();
      });
    });
  }

  /** Each new connection is one to this server. An earlier connection is closed as soon as it is not in use. */
  moveTo(server: MysqlServer): void {
    Object.assign(this.options, server);
    this.pool = this.open();
    for (const connection of this.opened) if (!this.used.has(connection)) connection.destroy();
  }

  private open(): Pool {
    const pool = mysql.createPool(this.options);
    // the listener must be there before the first connection
    pool.on('connection', (connection) => {
      this.settings.set(connection, withTimeout(configureSession(connection), STATEMENT_TIMEOUT_MS));
      this.follow(connection, () => this.pool === pool);
    });
    return pool;
  }

  /**
   * Destroys the connection in place of its return to the pool after an error that does not leave its session intact,
   * in all paths, also of TypeORM and if the error was handled. The session of a server that was read-only for a
   * moment, for example, would reject writes for ever.
   */
  private follow(connection: PoolConnection, isCurrent: () => boolean): void {
    const { release, destroy } = connection;
    let isIntact = true;
    const endUse = () => {
      this.used.get(connection)?.();
      this.used.delete(connection);
    };
    const forget = () => {
      this.opened.delete(connection);
      endUse();
    };
    this.opened.add(connection);
    // the pool removes the connection; without a listener the error would end the process
    connection.on('error', forget);
    connection.on('end', forget);
    onStatementError(connection, (error) => {
      explain(error);
      isIntact &&= leavesSessionIntact(error);
    });
    connection.destroy = () => {
      forget();
      destroy.call(connection);
    };
    connection.release = () => {
      if (!isIntact || !isCurrent()) return connection.destroy();
      release.call(connection);
      endUse();
    };
  }
}

/** What TypeORM needs of mysql2. */
export class MysqlDriver {
  /** Each attempt of a start to connect has its own pool. */
  pool: MysqlPool | undefined = undefined;

  constructor(private readonly file?: DatabaseUrlFile) {}

  createPool(options: PoolOptions): MysqlPool {
    this.pool = new MysqlPool(options, this.file);
    return this.pool;
  }
}

/** @param dataSource one that is connected to MySQL or MariaDB */
export function poolOf({ options }: DataSource): MysqlPool {
  return (options as unknown as { driver: MysqlDriver }).driver.pool as MysqlPool;
}

/** Without one of its settings, the connection could read old rows. */
async function configureSession(connection: PoolConnection): Promise<void> {
  const set = (setting: string) =>
    new Promise<void>((resolve, reject) => {
      connection.query(`SET SESSION ${setting}`, (error) => {
        if (!error && setting === IDLE_LIMIT) rememberIdleLimit(connection);
        if (!error || (!error.fatal && isUnknownVariable(error))) resolve();
        else reject(unusable(`SET SESSION ${setting}: ${error.message}`, error));
      });
    });
  await Promise.all(SETTINGS.map(set));
}

/** As mysql2 reports the loss of a connection. */
const unusable = (message: string, cause: Error) => Object.assign(new Error(message, { cause }), { fatal: true });

/** Some servers have numbers of their own for an unknown variable. */
function isUnknownVariable({ errno, message }: { errno?: number | undefined; message: string }): boolean {
  return errno === UNKNOWN_VARIABLE_ERRNO || /unknown.* variable|variable.* (not exist|unknown)/i.test(message);
}

type Done = (error: Error | null, ...results: unknown[]) => void;

/** Calls `report` with each error of a statement that is sent from now on. */
function onStatementError(connection: PoolConnection, report: (error: Error) => void): void {
  const reporting =
    (send: (...parameters: never[]) => unknown) =>
    (...parameters: unknown[]): unknown => {
      const done = parameters.at(-1) as Done;
      const reportAndEnd: Done = (error, ...results) => {
        if (error) report(error);
        done(error, ...results);
      };
      if (typeof done === 'function') parameters[parameters.length - 1] = reportAndEnd;
      return Reflect.apply(send, connection, parameters);
    };
  Object.assign(connection, { query: reporting(connection.query), execute: reporting(connection.execute) });
}
