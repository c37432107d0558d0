import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource } from 'typeorm';
import { isRepeatable } from './database-errors.js';

const ATTEMPTS = 10;

/**
 * Something that one process at a time does: a row that a conditional UPDATE takes. Not `GET_LOCK`, which a Galera cluster
 * keeps on each node apart.
 */
export interface Lease {
  name: 'migration' | 'purge';
  /** The process that takes it. */
  owner: string;
}

/** Before all migrations, which are themselves done under a lease. */
export async function createLeases(dataSource: DataSource): Promise<void> {
  // not by TypeORM's createTable, which looks and then creates: two processes would both. Leases are milliseconds as
  // text: 13 digits until 2286, so texts compare like numbers
  await repeated(() =>
    dataSource.query(
      `CREATE TABLE IF NOT EXISTS lease
        (name varchar(16) PRIMARY KEY, owner varchar(36) NOT NULL, leased_until varchar(13) NOT NULL)`,
    ),
  );
}

/** Takes the lease when it is free, or keeps it, for so many milliseconds; false while another process holds it. */
export function takeLease(dataSource: DataSource, lease: Lease, now: number, length: number): Promise<boolean> {
  return repeated(() => takeOnce(dataSource, lease, now, length));
}

async function takeOnce(dataSource: DataSource, { name, owner }: Lease, now: number, length: number): Promise<boolean> {
  const ignore = dataSource.options.type === 'better-sqlite3' ? 'OR IGNORE' : 'IGNORE';
  await dataSource.query(`INSERT ${ignore} INTO lease (name, owner, leased_until) VALUES (?, '', '0')`, [name]);
  const take = 'UPDATE lease SET owner = ?, leased_until = ? WHERE name = ? AND (owner = ? OR leased_until < ?)';
  const runner = dataSource.createQueryRunner();
  try {
    const { affected } = await runner.query(take, [owner, String(now + length), name, owner, String(now)], true);
    return affected === 1;
  } finally {
    await runner.release();
  }
}

export async function giveUpLease(dataSource: DataSource, { name, owner }: Lease): Promise<void> {
  const sql = "UPDATE lease SET leased_until = '0' WHERE name = ? AND owner = ?";
  await repeated(() => dataSource.query(sql, [name, owner]));
}

/** On a cluster who comes second is told so at its commit, and asked to send it again. */
async function repeated<Result>(send: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      if (attempt === ATTEMPTS || !isRepeatable(error)) throw error;
      await sleep(Math.random() * 20 * attempt);
    }
  }
}
