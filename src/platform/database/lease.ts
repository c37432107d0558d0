import type { DataSource } from 'typeorm';
import { LEASE_STATEMENT } from './retry-policy.js';
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
export async function createLeases(dataSource: DataSource): Promise<void> {
  // TypeORM's createTable would check first, and two processes could then both create the table
  // the column `leased_until` contains milliseconds as text: until 2286 they have 13 digits, so texts compare like
  // numbers
  await LEASE_STATEMENT.run(() =>
    dataSource.query(
      `CREATE TABLE IF NOT EXISTS lease
        (name varchar(16) PRIMARY KEY, owner varchar(36) NOT NULL, leased_until varchar(13) NOT NULL)`,
    ),
  );
}

/** Acquires a free lease, or extends it, for `durationMs`. Resolves to false while another process holds the lease. */
export function acquireLease(dataSource: DataSource, lease: Lease, now: number, durationMs: number): Promise<boolean> {
  return LEASE_STATEMENT.run(() => acquireOnce(dataSource, lease, now, durationMs));
}

async function acquireOnce(
  dataSource: DataSource,
  { name, owner }: Lease,
  now: number,
  durationMs: number,
): Promise<boolean> {
  const { insertIgnore } = dataSource.options.type === 'better-sqlite3' ? SQLITE_DIALECT : MYSQL_DIALECT;
  await dataSource.query(`${insertIgnore} INTO lease (name, owner, leased_until) VALUES (?, '', '0')`, [name]);
  const acquire = 'UPDATE lease SET owner = ?, leased_until = ? WHERE name = ? AND (owner = ? OR leased_until < ?)';
  const runner = dataSource.createQueryRunner();
  try {
    const parameters = [owner, String(now + durationMs), name, owner, String(now)];
    const { affected } = await runner.query(acquire, parameters, true);
    return affected === 1;
  } finally {
    await runner.release();
  }
}

export async function releaseLease(dataSource: DataSource, { name, owner }: Lease): Promise<void> {
  const sql = "UPDATE lease SET leased_until = '0' WHERE name = ? AND owner = ?";
  await LEASE_STATEMENT.run(() => dataSource.query(sql, [name, owner]));
}
