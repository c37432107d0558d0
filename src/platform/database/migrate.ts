import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DataSource, Table } from 'typeorm';
import type { Clock } from '../clock.js';

const LOCK_TABLE = 'migration_lock';
const LEASE = 60_000;
const RETRY = 250;

/** Whether the schema is older than this build. */
export async function hasPendingMigrations(dataSource: DataSource): Promise<boolean> {
  const applied = await appliedMigrations(dataSource);
  return dataSource.migrations.some((migration) => !applied.has(migration.name ?? ''));
}

/**
 * Brings the schema up to date; of several processes that try at once, one does it and the others wait for it.
 *
 * The lock is a row taken by a conditional UPDATE and not `GET_LOCK`, which a Galera cluster keeps on each node apart.
 *
 * @returns the names of the migrations that this process ran
 */
export async function migrate(dataSource: DataSource, clock: Clock): Promise<string[]> {
  if (!(await hasPendingMigrations(dataSource))) return [];
  const owner = randomUUID();
  await createLock(dataSource);
  while (!(await extendLock(dataSource, owner, clock.now()))) await sleep(RETRY);
  const heartbeat = setInterval(() => void extendLock(dataSource, owner, clock.now()), LEASE / 3);
  try {
    const done = await dataSource.runMigrations();
    return done.map((migration) => migration.name);
  } finally {
    clearInterval(heartbeat);
    await dataSource.query(`UPDATE ${LOCK_TABLE} SET leased_until = '0' WHERE owner = ?`, [owner]);
  }
}

async function appliedMigrations(dataSource: DataSource): Promise<Set<string>> {
  const runner = dataSource.createQueryRunner();
  try {
    if (!(await runner.hasTable('migrations'))) return new Set();
    const rows: { name: string }[] = await runner.query('SELECT name FROM migrations');
    return new Set(rows.map((row) => row.name));
  } finally {
    await runner.release();
  }
}

async function createLock(dataSource: DataSource): Promise<void> {
  const runner = dataSource.createQueryRunner();
  const ignore = dataSource.options.type === 'better-sqlite3' ? 'OR IGNORE' : 'IGNORE';
  try {
    const columns = [
      { name: 'id', type: 'integer', isPrimary: true },
      { name: 'owner', type: 'varchar', length: '36' },
      { name: 'leased_until', type: 'varchar', length: '13' }, // milliseconds; 13 digits until 2286, so texts compare like numbers
    ];
    await runner.createTable(new Table({ name: LOCK_TABLE, columns }), true);
    await runner.query(`INSERT ${ignore} INTO ${LOCK_TABLE} (id, owner, leased_until) VALUES (1, '', '0')`);
  } finally {
    await runner.release();
  }
}

/** Takes the lock when it is free, or keeps it for longer; false while another process holds it. */
async function extendLock(dataSource: DataSource, owner: string, now: number): Promise<boolean> {
  const runner = dataSource.createQueryRunner();
  try {
    const { affected } = await runner.query(
      `UPDATE ${LOCK_TABLE} SET owner = ?, leased_until = ? WHERE id = 1 AND (owner = ? OR leased_until < ?)`,
      [owner, String(now + LEASE), owner, String(now)],
      true,
    );
    return affected === 1;
  } finally {
    await runner.release();
  }
}
