import { DataSource } from 'typeorm';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { dataSourceOptions } from '../../src/platform/database/data-source-options.js';
import { environmentOf } from './processes.js';

/** The service's own connections never wait for a lock of a SQLite file: they repeat the statement. */
const LOCK_TIMEOUT_MS = 10_000;

/**
 * Connects a test to its database. The connection waits for the locks of service processes, as an operator's tool does.
 */
export async function connectTo(database: TestDatabase): Promise<DataSource> {
  const dataSource = new DataSource(dataSourceOptions(loadConfiguration(environmentOf(database))));
  await dataSource.initialize();
  if (database.url.startsWith('sqlite:')) await dataSource.query(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`);
  return dataSource;
}
