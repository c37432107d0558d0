import { DataSource } from 'typeorm';
import { onMariadb } from '../../packages/conformance-kit/src/test-database.js';
import type { TestService } from './test-service.js';

const TABLES = onMariadb
  ? 'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()'
  : "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";

/** The tables of the database, of which no entity is needed, that have one of the texts in any column of any row. */
export async function tablesWith({ application }: TestService, texts: string[]): Promise<string[]> {
  const dataSource = application.get(DataSource);
  const names: { name: string }[] = await dataSource.query(TABLES);
  const tables: string[] = [];
  for (const { name } of names) {
    const rows: object[] = await dataSource.query(`SELECT * FROM ${name}`);
    if (texts.some((text) => rows.some((row) => JSON.stringify(row).includes(text)))) tables.push(name);
  }
  return tables.sort();
}
