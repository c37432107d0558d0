import mysql, { type Pool, type PoolOptions } from 'mysql2';
import type { DataSourceOptions } from 'typeorm';
import { type MigrationClass, migrationsWith } from '../../migrations/migrations.js';
import type { Configuration } from '../configuration/configuration.js';
import { loadWhenUsed } from '../load-when-used.js';
import { tlsOptionsOf } from './database-tls.js';

/**
 * One set of entities and migrations for each database that DATABASE_URL can name.
 *
 * @param theirs the migrations of an extension
 * @throws Error when one of them has a name that cannot be
 */
export function dataSourceOptions(configuration: Configuration, theirs: MigrationClass[] = []): DataSourceOptions {
  const url = configuration.DATABASE_URL;
  const schema = { migrations: migrationsWith(theirs), migrationsTransactionMode: 'each', logging: false } as const;
  if (configuration.embedded) {
    return {
      ...schema,
      type: 'better-sqlite3',
      driver: loadWhenUsed<typeof import('libsql')>('libsql'),
      database: url.slice('sqlite:'.length),
      enableWAL: true,
      prepareDatabase: (database: { pragma(text: string): unknown }) => void database.pragma('busy_timeout = 5000'),
    };
  }
  const { protocol, hostname, port, username, password, pathname, searchParams } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const { ssl, stream } = tlsOptionsOf(host, searchParams) ?? {};
  return {
    ...schema,
    // the two differ in the types they report: the wrong one sees a schema that is for ever out of date
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
      maxPreparedStatements: 200, // of a connection: lists of a purge are each a text of their own
      ...(stream && { stream }),
    },
  };
}

/** Given to TypeORM as its driver, since a session's settings must be listened for before the first connection. */
function createPool(options: PoolOptions): Pool {
  const pool = mysql.createPool(options);
  pool.on('connection', (connection) => {
    connection.on('error', () => undefined); // the pool drops it; without a listener the process would end
    connection.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED', () => undefined);
    // reads wait for what other nodes have acknowledged: on Galera, on Group Replication; elsewhere unknown, or nothing
    connection.query('SET SESSION wsrep_sync_wait = 3', () => undefined);
    connection.query("SET SESSION group_replication_consistency = 'BEFORE'", () => undefined);
    connection.query("SET SESSION innodb_lock_wait_timeout = 2, time_zone = '+00:00'", () => undefined);
  });
  return pool;
}
