import type { DataSource } from 'typeorm';

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
  await dataSource.query(
    `CREATE TABLE IF NOT EXISTS lease
      (name varchar(16) PRIMARY KEY, owner varchar(36) NOT NULL, leased_until varchar(13) NOT NULL)`,
  );
}

/** Takes the lease when it is free, or keeps it, for so many milliseconds; false while another process holds it. */
export async function takeLease(
  dataSource: DataSource,
  { name, owner }: Lease,
  now: number,
  length: number,
): Promise<boolean> {
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
  await dataSource.query("UPDATE lease SET leased_until = '0' WHERE name = ? AND owner = ?", [name, owner]);
}
