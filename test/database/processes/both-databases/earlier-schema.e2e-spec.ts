import type { DataSource } from 'typeorm';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { TestDatabase } from '../../../../packages/conformance-kit/src/test-database.js';
import { connectTo } from '../../../support/database-connection.js';
import { emptyDatabaseOfTest } from '../../../support/databases.js';
import { environmentOf, runCli } from '../../../support/processes.js';
import { startTestService } from '../../../support/test-service.js';

const SENTENCE = /the database has the schema of a build before 2\.0.*delete var\//;

let database: TestDatabase;
let dataSource: DataSource;
beforeEach(async () => {
  database = await emptyDatabaseOfTest();
  dataSource = await connectTo(database);
  onTestFinished(() => dataSource.destroy());
});

describe.each([
  ['before 1.0, with its migrations', 'House1795100000000', 'customer_identity'],
  ['before 1.0, whose migrations are missing', undefined, 'customer_identity'],
  ['of 1.0, with its migrations', 'Registry1795000000000', 'browser_customer'],
  ['of 1.0, whose migrations are missing', undefined, 'browser_customer'],
])('protocol §9.6: the schema of a build before 2.0 %s', (_, migration, table) => {
  beforeEach(async () => {
    await dataSource.query('CREATE TABLE migrations (id integer, timestamp bigint, name varchar(255))');
    if (migration) await dataSource.query(`INSERT INTO migrations VALUES (1, 1795000000000, '${migration}')`);
    await dataSource.query(`CREATE TABLE ${table} (entity_id varchar(36))`);
  });

  it.each([
    ['the service, which may migrate', 'true'],
    ['the service, which waits for migrations', 'false'],
  ])('stops %s with exit code 1 and a sentence, and changes nothing', async (_process, MIGRATE_ON_START) => {
    const environment = { MIGRATE_ON_START };
    await expect(startTestService({ database, environment })).rejects.toThrow(SENTENCE);
    expect(await dataSource.query('SELECT name FROM migrations')).toHaveLength(migration ? 1 : 0);
  });

  it('stops the command migrate with exit code 1 and a sentence, and changes nothing', async () => {
    for (const command of [['migrate'], ['migrate', '--check']]) {
      const { code, stdout, stderr } = await runCli(command, environmentOf(database));
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(SENTENCE);
    }
    expect(await dataSource.query('SELECT name FROM migrations')).toHaveLength(migration ? 1 : 0);
  });
});
