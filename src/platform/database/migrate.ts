import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DataSource, type Migration, MigrationExecutor, type QueryRunner } from 'typeorm';
import { migrationName, migrations } from '../../migrations/migrations.js';
import { EarlierSchemaError } from './database-errors.js';
import { acquireLease, createLeases, LEASE_DURATION_MS, type Lease, releaseLease } from './lease.js';
import { ROLLED_BACK, SQLITE_LOCK } from './retry-policy.js';

/** Runs the service's migrations, then those of an extension, each in the order of the timestamps in their names. */
class SingleMigrations extends MigrationExecutor {
  private next: Migration | undefined;

  /** Runs one migration. */
  override async executePendingMigrations(): Promise<Migration[]> {
    this.next = undefined;
    [this.next] = await this.getPendingMigrations();
    return this.next ? super.executePendingMigrations() : [];
  }

  protected override getMigrations(): Migration[] {
    if (this.next) return [this.next];
    const serviceNames = new Set(migrations.map(migrationName));
    const all = super.getMigrations();
    return [...all.filter(({ name }) => serviceNames.has(name)), ...all.filter(({ name }) => !serviceNames.has(name))];
  }
}

const LEASE_POLL_MS = 250;

/** Tables of builds before 2.0, of which each had one, even if the rows of its migrations were lost. */
const EARLIER_TABLES = ['customer_identity', 'browser_customer'];

/** @throws EarlierSchemaError */
export async function hasPendingMigrations(dataSource: DataSource): Promise<boolean> {
  const runner = dataSource.createQueryRunner();
  try {
    const hasRun = await runner.hasTable('migrations');
    const rows: { name: string }[] = hasRun ? await runner.query('SELECT name FROM migrations') : [];
    const applied = new Set(rows.map(({ name }) => name));
    const [first] = migrations.map(migrationName);
    const isEarlier = applied.size > 0 ? !applied.has(first as string) : await hasAnyTable(runner, EARLIER_TABLES);
    if (isEarlier) throw new EarlierSchemaError();
    return dataSource.migrations.some((migration) => !applied.has(migrationName(migration)));
  } finally {
    await runner.release();
  }
}

async function hasAnyTable(runner: QueryRunner, names: string[]): Promise<boolean> {
  for (const name of names) if (await runner.hasTable(name)) return true;
  return false;
}

/**
 * If several processes start at once, one migrates and the others wait. Returns the names of what this one ran. A later
 * attempt with the same `owner` goes on with the lease of an earlier one that lost its connection.
 */
export function migrate(dataSource: DataSource, owner: string = randomUUID()): Promise<string[]> {
  const lease: Lease = { name: 'migration', owner };
  return SQLITE_LOCK.run(() => migrateOnce(dataSource, lease));
}

async function migrateOnce(dataSource: DataSource, lease: Lease): Promise<string[]> {
  if (!(await hasPendingMigrations(dataSource))) return [];
  const { manager } = dataSource;
  await ROLLED_BACK.run(() => createLeases(manager));
  const acquire = () => ROLLED_BACK.run(() => acquireLease(manager, lease));
  const executor = new SingleMigrations(dataSource);
  executor.transaction = 'each';
  const done: string[] = [];
  const heartbeat = setInterval(() => void acquire().catch(() => undefined), LEASE_DURATION_MS / 3);
  try {
    for (;;) {
      // before each migration, because another process continues if this one was stopped until its lease ended
      while (!(await acquire())) await sleep(LEASE_POLL_MS);
      const [migration] = await executor.executePendingMigrations();
      if (!migration) return done;
      done.push(migration.name);
    }
  } finally {
    clearInterval(heartbeat);
    await ROLLED_BACK.run(() => releaseLease(manager, lease));
  }
}
