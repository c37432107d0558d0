import mysql, { type Pool, type PoolOptions } from 'mysql2';
import type { DataSourceOptions } from 'typeorm';
import { type MigrationClass, migrationsWith } from '../../migrations/migrations.js';
import type { Configuration } from '../configuration/configuration.js';
import { loadWhenUsed } from '../load-when-used.js';
import { tlsOptionsOf } from './database-tls.js';
import { configureSession } from './session-settings.js';
import { prepareFile } from './sqlite-statements.js';

/**
 * The least recently used statement beyond this number is closed. All pods of an installation share the server's
 * `max_prepared_stmt_count`, 16,382 by default: 11 pods with 10 connections each stay below it.
 */
const PREPARED_STATEMENTS_PER_CONNECTION = 140;

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
    configureSession(connection);
  });
  return pool;
}
