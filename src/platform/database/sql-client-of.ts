import type { DataSource } from 'typeorm';
import { MysqlClient } from './mysql-client.js';
import type { SqlClient } from './sql-client.js';
import { SqliteClient } from './sqlite-client.js';
import { STATEMENT_TIMEOUT_MS } from './statement-timeout.js';

/** A client that shares the connections of a data source. */
export async function sqlClientOf(dataSource: DataSource): Promise<SqlClient> {
  if (dataSource.options.type === 'better-sqlite3') return SqliteClient.open(dataSource);
  return new MysqlClient(dataSource, STATEMENT_TIMEOUT_MS);
}
