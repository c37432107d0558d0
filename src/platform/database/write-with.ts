import type { EntityManager } from 'typeorm';
import type { BoundWrite } from './bound-write.js';
import { MYSQL_DIALECT, SQLITE_DIALECT } from './sql-dialect.js';
import { asStored } from './sqlite-statements.js';

/** Sends a write in a transaction, and resolves to the number of rows that it matched. */
export async function writeWith(manager: EntityManager, { statement, parameters }: BoundWrite): Promise<number> {
  const isSqlite = manager.dataSource.options.type === 'better-sqlite3';
  const sql = statement.text(isSqlite ? SQLITE_DIALECT : MYSQL_DIALECT);
  const result = await manager.queryRunner?.query(sql, isSqlite ? parameters.map(asStored) : parameters, true);
  return result?.affected ?? 0;
}
