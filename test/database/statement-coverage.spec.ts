import { expect, it } from 'vitest';
import { coverageProblem } from '../../scripts/statement-coverage.js';

const record = (database: string, sql: string) =>
  JSON.stringify({ database, sql, testFile: '/p/test/token/a.e2e-spec.ts' });
const problemOf = (...records: string[]) => coverageProblem([...records, ''].join('\n'));

it('finds each statement that ran on SQLite and not on MariaDB, once', () => {
  const problem = problemOf(
    record('mariadb', 'SELECT 1'),
    record('sqlite', 'SELECT 1'),
    record('sqlite', 'SELECT 2'),
    record('sqlite', 'SELECT 2'),
    record('mariadb', 'SELECT 3'),
  );
  expect(problem?.match(/SELECT \d/g)).toEqual(['SELECT 2']);
  expect(problem).toContain('  test/token/a.e2e-spec.ts: SELECT 2');
});

it('finds no problem if each statement on SQLite also ran on MariaDB', () => {
  expect(problemOf(record('sqlite', 'SELECT 1'), record('mariadb', 'SELECT 1'))).toBeUndefined();
});

it.each([
  ['sqlite', [record('mariadb', 'SELECT 1')]],
  ['mariadb', [record('sqlite', 'SELECT 1')]],
  ['sqlite and mariadb', []],
])('finds a problem if nothing was recorded on %s', (databases, records) => {
  expect(problemOf(...records)).toBe(`No statement of the service was recorded on ${databases}.`);
});
