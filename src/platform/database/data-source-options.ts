import type { DataSourceOptions } from 'typeorm';
import { type MigrationClass, migrationsWith } from '../../migrations/migrations.js';
import type { Configuration } from '../configuration/configuration.js';
import { loadWhenUsed } from '../load-when-used.js';
import type { MetricsRegistry } from '../metrics.js';
import { DatabaseUrlFile } from './database-url-file.js';
import { MysqlDriver } from './mysql-pool.js';
import { serverOf, tlsOf } from './mysql-server.js';
import { prepareFile } from './sqlite-statements.js';

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
    driver: new MysqlDriver(file),
    ...server,
    username: user,
    database: decodeURIComponent(pathname.slice(1)),
    ...(ssl && { ssl }),
    timezone: 'Z',
    charset: 'utf8mb4',
    connectTimeout: 1_000,
    poolSize: configuration.DB_POOL_SIZE,
    extra: {
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
