import type { EntityManager } from 'typeorm';
import type { BoundWrite } from './bound-write.js';
import { MYSQL_DIALECT, SQLITE_DIALECT } from './sql-dialect.js';
import { asStored } from './sqlite-client.js';

/** Sends a write in a transaction of TypeORM. */
export async function writeWith(manager: EntityManager, { statement, parameters }: BoundWrite): Promise<void> {
  const isSqlite = manager.connection.options.type === 'better-sqlite3';
  const sql = statement.text(isSqlite ? SQLITE_DIALECT : MYSQL_DIALECT);
  await manager.query(sql, isSqlite ? parameters.map(asStored) : parameters);
}
