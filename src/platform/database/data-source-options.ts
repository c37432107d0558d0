import mysql, { type Pool, type PoolConnection, type PoolOptions } from 'mysql2';
import type { DataSourceOptions } from 'typeorm';
import { type MigrationClass, migrationsWith } from '../../migrations/migrations.js';
import type { Configuration } from '../configuration/configuration.js';
import { loadWhenUsed } from '../load-when-used.js';
import { tlsOptionsOf } from './database-tls.js';
import { rememberIdleLimit } from './mysql-transaction.js';
import { prepareFile } from './sqlite-statements.js';

/**
 * The least recently used statement beyond this number is closed. All pods of an installation share the server's
 * `max_prepared_stmt_count`, 16,382 by default: 11 pods with 10 connections each stay below it.
 */
const PREPARED_STATEMENTS_PER_CONNECTION = 140;

/** Not the server's, which may have NO_BACKSLASH_ESCAPES or ANSI_QUOTES: then a value could change a statement. */
const SQL_MODE = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ONLY_FULL_GROUP_BY,ERROR_FOR_DIVISION_BY_ZERO';

const UNKNOWN_VARIABLE_ERRNO = 1193;

/**
 * The options of TypeORM for the database that DATABASE_URL names.
 *
 * @param extensionMigrations the migrations of an extension
 * @throws Error if one of them has an invalid name
 */
export function dataSourceOptions(
  configuration: Configuration,
  extensionMigrations: MigrationClass[] = [],
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
  const { protocol, hostname, port, username, password, pathname, searchParams } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const { ssl, stream } = tlsOptionsOf(host, searchParams) ?? {};
  return {
    ...schema,
    // the two report different column types: with the wrong type, TypeORM finds differences in a correct schema
    type: protocol === 'mariadb:' ? 'mariadb' : 'mysql',
    driver: { createPool },
    host,
    port: Number(port || 3306),
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
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

/**
 * Creates the pool for TypeORM, because the listener that configures a session must be there before the first
 * connection.
 */
function createPool(options: PoolOptions): Pool {
  const pool = mysql.createPool(options);
  pool.on('connection', (connection) => {
    // the pool removes the connection; without a listener the error would end the process
    connection.on('error', () => undefined);
    const set = (text: string, then?: () => void) =>
      connection.query(`SET SESSION ${text}`, (error) => (error ? destroyUnlessSet(connection, error) : then?.()));
    // mysql2 writes the values of a transaction into its statements, with a backslash before each quote
    set(`sql_mode = '${SQL_MODE}'`);
    set('TRANSACTION ISOLATION LEVEL READ COMMITTED');
    // on Galera and Group Replication, a read sees the commits of all nodes; other servers do not know the variables
    set('wsrep_sync_wait = 3');
    set("group_replication_consistency = 'BEFORE'");
    // MariaDB ends a transaction whose process is lost; MySQL has no such variable, see `sendTransaction`
    set('idle_write_transaction_timeout = 10', () => rememberIdleLimit(connection));
    set("innodb_lock_wait_timeout = 2, time_zone = '+00:00'");
  });
  return pool;
}

/** Without its settings a connection could read old rows. The pool replaces a destroyed connection. */
function destroyUnlessSet(connection: PoolConnection, error: { errno?: number | undefined }): void {
  if (error.errno !== UNKNOWN_VARIABLE_ERRNO) connection.destroy();
}
