import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { addColumns, Columns, createTables, dropTables, NULLABLE } from '../../../src/migrations/schema.js';
import { loadConfiguration } from '../../../src/platform/configuration/load-configuration.js';
import { dataSourceOptions } from '../../../src/platform/database/data-source-options.js';
import { hasPendingMigrations, migrate } from '../../../src/platform/database/migrate.js';
import { Registry } from '../../../src/registry/registry.js';
import { emptyDatabaseOfTest } from '../../support/databases.js';
import { environmentOf } from '../../support/processes.js';
import { testRegistry } from '../../support/test-registry.js';
import { newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

async function tablesOf(dataSource: DataSource): Promise<string[]> {
  const rows: { name: string }[] = await dataSource.query(
    onMariadb
      ? 'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()'
      : "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
  );
  return rows.map(({ name }) => name).sort();
}

describe('the schema', () => {
  const registry = testRegistry();
  const client = (client_id: string) => ({ client_id, name: client_id, client_type: 'web' });
  registry.clients.push(client('Same-Id'), client('same-id'));
  const service = useService({ registry });
  let dataSource: DataSource;
  beforeAll(async () => {
    dataSource = await new DataSource({ ...service.application.get(DataSource).options }).initialize();
  });
  afterAll(() => dataSource?.destroy());

  const entityTables = () => dataSource.entityMetadatas.map(({ tableName }) => tableName);
  const pendingChanges = async () => {
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    return upQueries.map(({ query }) => query);
  };

  it('matches the entities', async () => {
    expect(dataSource.entityMetadatas.length).toBeGreaterThan(5);
    expect(await pendingChanges()).toEqual([]);
    expect(await tablesOf(dataSource)).toEqual(expect.arrayContaining(entityTables()));
  });

  it('gets the missing columns of a later migration, and is not changed if the migration runs again', async () => {
    const runner = dataSource.createQueryRunner();
    onTestFinished(() => runner.release());
    await createTables(runner, [{ name: 'later', columns: [new Columns(runner).key('id', 36)] }]);
    onTestFinished(() => dropTables(runner, ['later']));
    await dataSource.query("INSERT INTO later (id) VALUES ('1')");
    const added = [
      new Columns(runner).text('city', 80, NULLABLE),
      new Columns(runner).integer('visits', { default: 0 }),
    ];
    await addColumns(runner, 'later', added);
    await addColumns(runner, 'later', added);
    expect(await dataSource.query('SELECT * FROM later')).toEqual([{ id: '1', city: null, visits: 0 }]);
  });

  it('compares ids by bytes, so that ids that differ in case are different', async () => {
    const registry = service.application.get(Registry, { strict: false });
    expect([registry.client('Same-Id')?.name, registry.client('same-id')?.name]).toEqual(['Same-Id', 'same-id']);
    const count = async (id: string) => {
      const sql = 'SELECT COUNT(*) AS count FROM client_application WHERE client_id = ?';
      return Number((await dataSource.query(sql, [id]))[0].count);
    };
    expect(await Promise.all(['Same-Id', 'same-id', 'SAME-ID', 's\u00e4me-id'].map(count))).toEqual([1, 1, 0, 0]);
  });

  it.runIf(onMariadb)('compares every short text by bytes', async () => {
    const sql = `SELECT table_name, column_name, collation_name FROM information_schema.columns
      WHERE table_schema = DATABASE() AND data_type IN ('varchar', 'char') AND table_name IN (?)
      AND collation_name <> 'utf8mb4_bin'`;
    expect(await dataSource.query(sql, [entityTables()])).toEqual([]);
  });

  it('causes 500 as long as a table is missing, because a repetition would not help', async () => {
    const code = await transferToken(service, (await newCustomer(service)).access_token);
    await dataSource.query('ALTER TABLE session RENAME TO hidden_session');
    expect((await redeem(service, code)).body.error).toBe('server_error');
    await dataSource.query('ALTER TABLE hidden_session RENAME TO session');
    expect((await redeem(service, code)).status).toBe(200);
  });

  it('can be migrated down completely and up again', async () => {
    const before = await tablesOf(dataSource);
    for (const _step of dataSource.migrations) await dataSource.undoLastMigration();
    expect((await tablesOf(dataSource)).filter((table) => entityTables().includes(table))).toEqual([]);
    expect(await hasPendingMigrations(dataSource)).toBe(true);
    expect(await migrate(dataSource)).toHaveLength(dataSource.migrations.length);
    expect(await tablesOf(dataSource)).toEqual(before);
    expect(await pendingChanges()).toEqual([]);
  });
});

/** Takes the lease, as another process does after it has ended. */
class TakesLease1999000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("UPDATE lease SET owner = 'other'");
  }
  async down(): Promise<void> {}
}

class Next1999000000001 implements MigrationInterface {
  async up(): Promise<void> {}
  async down(): Promise<void> {}
}

describe('a process that loses the lease during a migration', () => {
  it('runs the next migration only when it has the lease again', async () => {
    const configuration = loadConfiguration(environmentOf(await emptyDatabaseOfTest()));
    const options = dataSourceOptions(configuration, [TakesLease1999000000000, Next1999000000001]);
    const dataSource = await new DataSource(options).initialize();
    onTestFinished(() => dataSource.destroy());
    const query = vi.spyOn(dataSource.manager, 'query');
    const attempts = () => query.mock.calls.filter(([sql]) => /^UPDATE lease SET owner = \?/.test(sql)).length;
    const migrating = migrate(dataSource);
    const applied = async () =>
      (await dataSource.query('SELECT name FROM migrations ORDER BY id')).map(({ name }: { name: string }) => name);
    await expect.poll(() => applied().catch(() => [])).toContain('TakesLease1999000000000');
    const before = attempts();
    await expect.poll(attempts).toBeGreaterThan(before + 2);
    expect((await applied()).at(-1)).toBe('TakesLease1999000000000');
    await dataSource.query("UPDATE lease SET owner = ''");
    expect((await migrating).at(-1)).toBe('Next1999000000001');
    expect(await hasPendingMigrations(dataSource), 'migrations that are named by their class').toBe(false);
  });
});
