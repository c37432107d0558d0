import type { EntityManager } from 'typeorm';
import { dialectOf } from './sql-dialect.js';

/** A row that one process holds. Each node of a Galera cluster has its own locks of `GET_LOCK`. */
export interface Lease {
  name: 'migration' | 'purge' | 'offboarding';
  owner: string;
}

/** A lease ends after this time of the database, unless its owner acquires it again. */
export const LEASE_DURATION_MS = 60_000;

/** Creates the table of leases. No migration can do this, because migrations run under a lease. */
export async function createLeases(manager: EntityManager): Promise<void> {
  // TypeORM's createTable would check first, and two processes could then both create the table
  await manager.query(
    `CREATE TABLE IF NOT EXISTS lease
      (name varchar(16) PRIMARY KEY, owner varchar(36) NOT NULL, acquired_at datetime(3) NOT NULL,
       finished_day integer NOT NULL DEFAULT 0)`,
  );
}

/** Matches no row. A read-only server, session or file rejects the statement all the same. */
export async function assertWritable(manager: EntityManager): Promise<void> {
  await manager.query("UPDATE lease SET owner = owner WHERE name = ''");
}

/** Acquires a free lease, or extends it. Resolves to false while another process holds the lease. */
export async function acquireLease(manager: EntityManager, { name, owner }: Lease): Promise<boolean> {
  const { now, insertIgnore, millisecondsSince } = dialectOf(manager.dataSource);
  await manager.query(`${insertIgnore} INTO lease (name, owner, acquired_at) VALUES (?, '', ${now})`, [name]);
  await manager.query(
    `UPDATE lease SET owner = ?, acquired_at = ${now}
      WHERE name = ? AND (owner IN (?, '') OR ${millisecondsSince('acquired_at')} NOT BETWEEN ? AND ?)`,
    // the clock of the database may have gone back, for example on another node
    [owner, name, owner, -LEASE_DURATION_MS, LEASE_DURATION_MS],
  );
  return (await manager.query('SELECT 1 FROM lease WHERE name = ? AND owner = ?', [name, owner])).length > 0;
}

export async function releaseLease(manager: EntityManager, { name, owner }: Lease): Promise<void> {
  await manager.query("UPDATE lease SET owner = '' WHERE name = ? AND owner = ?", [name, owner]);
}

/** The day, since 1970 in UTC, on which an owner of the lease last finished the work of a day; 0 if none has. */
export async function finishedDay(manager: EntityManager, { name }: Lease): Promise<number> {
  const [row] = await manager.query('SELECT finished_day FROM lease WHERE name = ?', [name]);
  return row?.finished_day ?? 0;
}

/** Of two owners the later day stays. */
export async function finishDay(manager: EntityManager, { name }: Lease, day: number): Promise<void> {
  await manager.query('UPDATE lease SET finished_day = ? WHERE name = ? AND finished_day < ?', [day, name, day]);
}
