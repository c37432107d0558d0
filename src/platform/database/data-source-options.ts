import mysql, { type Pool, type PoolConnection, type PoolOptions } from 'mysql2';
import type { DataSourceOptions } from 'typeorm';
import { type MigrationClass, migrationsWith } from '../../migrations/migrations.js';
import type { Configuration } from '../configuration/configuration.js';
import { loadWhenUsed } from '../load-when-used.js';
import type { MetricsRegistry } from '../metrics.js';
import { mysqlSocket, onCommandError } from '../private-members.js';
import { leavesSessionIntact } from './database-errors.js';
import { DatabaseUrlFile } from './database-url-file.js';
import { rememberIdleLimit } from './mysql-client.js';
import { serverOf, tlsOf } from './mysql-server.js';
import { prepareFile } from './sqlite-statements.js';

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
];

const UNKNOWN_VARIABLE_ERRNO = 1193;

function configureSession(connection: PoolConnection): void {
  for (const setting of SETTINGS)
    connection.query(`SET SESSION ${setting}`, (error) => {
      if (!error) {
        if (setting === IDLE_LIMIT) rememberIdleLimit(connection);
      } else if (!error.fatal && !isUnknownVariable(error)) abort(connection, setting, error);
    });
}

/** Some servers have numbers of their own for an unknown variable. */
function isUnknownVariable({ errno, message }: { errno?: number | undefined; message: string }): boolean {
  return errno === UNKNOWN_VARIABLE_ERRNO || /unknown.* variable|variable.* (not exist|unknown)/i.test(message);
}

/**
 * Without its setting, the connection could read old rows. Statements that wait for it get this error. After
 * `connection.destroy()` they would get `write after end`.
 */
function abort(connection: PoolConnection, setting: string, cause: Error): void {
  const error = new Error(`SET SESSION ${setting}: ${cause.message}`, { cause });
  mysqlSocket(connection).destroy(error);
}

/** All pods share `max_prepared_stmt_count`, 16,382 by default: 11 pods with 10 connections each stay below it. */
const PREPARED_STATEMENTS_PER_CONNECTION = 140;

/**
 * @param metrics of a process that follows the file of DATABASE_URL_FILE
 * @throws Error if a migration of the extension has an invalid name
 */
export function dataSourceOptions(
  configuration: Configuration,
  extensionMigrations: MigrationClass[] = [],
  metrics?: MetricsRegistry,
): DataSourceOptions {
  const url = configuration.DATABASE_URL;
  const schema = {
    migrations: migrationsWith(extensionMigrations),
    migrationsTransactionMode: 'each',
    logging: false,
  } as const;
  if (configuration.embedded) {
    return {
      ...schema,
      type: 'better-sqlite3',
      driver: loadWhenUsed<typeof import('libsql')>('libsql'),
      database: url.slice('sqlite:'.length),
      prepareDatabase: prepareFile,
    };
  }
  const { protocol, pathname } = new URL(url);
  const { user, stream, ...server } = serverOf(url);
  const ssl = tlsOf(url);
  const path = configuration.files.DATABASE_URL;
  const file = metrics && path !== undefined ? new DatabaseUrlFile(path, url, metrics) : undefined;
  return {
    ...schema,
    // the two report different column types: with the wrong type, TypeORM finds differences in a correct schema
    type: protocol === 'mariadb:' ? 'mariadb' : 'mysql',
    driver: { createPool: (options: PoolOptions) => file?.createPool(options, createPool) ?? createPool(options) },
    ...server,
    username: user,
    database: decodeURIComponent(pathname.slice(1)),
    ...(ssl && { ssl }),
    timezone: 'Z',
    charset: 'utf8mb4',
    connectTimeout: 1_000,
    poolSize: configuration.DB_POOL_SIZE,
    extra: {
      queueLimit: 100 * configuration.DB_POOL_SIZE,
      enableKeepAlive: true,
      jsonStrings: true,
      // MySQL gives integer expressions the type BIGINT or DECIMAL; TypeORM's default returns these as strings
      bigNumberStrings: false,
      decimalNumbers: true,
      maxPreparedStatements: PREPARED_STATEMENTS_PER_CONNECTION,
      ...(stream && { stream }),
    },
  };
}

/** The listener that configures a session must be there before the first connection. */
function createPool(options: PoolOptions): Pool {
  const pool = mysql.createPool(options);
  pool.on('connection', (connection) => {
    // the pool removes the connection; without a listener the error would end the process
    connection.on('error', () => undefined);
    configureSession(connection);
    returnIfIntact(connection);
  });
  return pool;
}

/**
 * Destroys the connection in place of its return to the pool after an error that does not leave its session intact, in
 * all paths, also of TypeORM and if the error was handled. The session of a server that was read-only for a moment, for
 * example, would reject writes for ever.
 */
function returnIfIntact(connection: PoolConnection): void {
  const { release } = connection;
  let isIntact = true;
  onCommandError(connection, (error) => {
    isIntact &&= leavesSessionIntact(error);
  });
  connection.release = () => (isIntact ? release.call(connection) : connection.destroy());
}
