import { expect, it } from 'vitest';
import { coverageMessage, statementsOnSqliteOnly } from '../../scripts/statement-coverage.js';

const record = (database: string, sql: string) =>
  JSON.stringify({ database, sql, testFile: '/p/test/e2e/a.e2e-spec.ts' });

it('finds each statement that ran on SQLite and not on MariaDB, once', () => {
  const records = [
    record('mariadb', 'SELECT 1'),
    record('sqlite', 'SELECT 1'),
    record('sqlite', 'SELECT 2'),
    record('sqlite', 'SELECT 2'),
    record('mariadb', 'SELECT 3'),
    '',
  ];
  const found = statementsOnSqliteOnly(records.join('\n'));
  expect(found.map(({ sql }) => sql)).toEqual(['SELECT 2']);
  expect(coverageMessage(found)).toContain('  test/e2e/a.e2e-spec.ts: SELECT 2');
});
