import type { DataSource } from 'typeorm';
import { MysqlClient } from './mysql-client.js';
import type { SqlClient } from './sql-client.js';
import { SqliteClient, type SqliteConnection } from './sqlite-client.js';
import { STATEMENT_TIMEOUT_MS } from './statement-timeout.js';

/** A client that shares the connections of a data source. */
export function sqlClientOf({ driver, options }: DataSource): SqlClient {
  if (options.type === 'better-sqlite3') {
    return new SqliteClient((driver as unknown as { databaseConnection: SqliteConnection }).databaseConnection);
  }
  const { pool } = driver as unknown as { pool: ConstructorParameters<typeof MysqlClient>[0] };
  return new MysqlClient(pool, STATEMENT_TIMEOUT_MS);
}
