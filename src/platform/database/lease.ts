import type { EntityManager } from 'typeorm';
import { MYSQL_DIALECT, SQLITE_DIALECT } from './sql-dialect.js';

/**
 * Lets one process at a time migrate or purge. A lease is a row that a conditional UPDATE acquires. `GET_LOCK` does not
 * work, because each node of a Galera cluster has its own locks.
 */
export interface Lease {
  name: 'migration' | 'purge';
  /** The random id of the run that acquires the lease. */
  owner: string;
}

/** Creates the table of leases. No migration can do this, because migrations run under a lease. */
export async function createLeases(manager: EntityManager): Promise<void> {
  // TypeORM's createTable would check first, and two processes could then both create the table
  // the column `leased_until` contains milliseconds as text: until 2286 they have 13 digits, so texts compare like
  // numbers
  await manager.query(
    `CREATE TABLE IF NOT EXISTS lease
      (name varchar(16) PRIMARY KEY, owner varchar(36) NOT NULL, leased_until varchar(13) NOT NULL)`,
  );
}

/** Acquires a free lease, or extends it, for `durationMs`. Resolves to false while another process holds the lease. */
export async function acquireLease(
  manager: EntityManager,
  { name, owner }: Lease,
  now: number,
  durationMs: number,
): Promise<boolean> {
  const { insertIgnore } = manager.dataSource.options.type === 'better-sqlite3' ? SQLITE_DIALECT : MYSQL_DIALECT;
  await manager.query(`${insertIgnore} INTO lease (name, owner, leased_until) VALUES (?, '', '0')`, [name]);
  const until = String(now + durationMs);
  await manager.query(
    'UPDATE lease SET owner = ?, leased_until = ? WHERE name = ? AND (owner = ? OR leased_until < ?)',
    [owner, until, name, owner, String(now)],
  );
  const held = 'SELECT 1 FROM lease WHERE name = ? AND owner = ? AND leased_until = ?';
  return (await manager.query(held, [name, owner, until])).length > 0;
}

export async function releaseLease(manager: EntityManager, { name, owner }: Lease): Promise<void> {
  await manager.query("UPDATE lease SET leased_until = '0' WHERE name = ? AND owner = ?", [name, owner]);
}
