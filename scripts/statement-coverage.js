// @ts-check

/** @typedef {{ database: string, sql: string, testFile: string }} RecordedStatement */

/**
 * The statements of the service that ran on SQLite only, with the test file that sent them first.
 * @param {string} records one JSON object per line (test/support/statement-recorder.ts)
 * @returns {RecordedStatement[]}
 */
export function statementsOnSqliteOnly(records) {
  const lines = records.split('\n').filter((line) => line !== '');
  /** @type {RecordedStatement[]} */
  const statements = lines.map((line) => JSON.parse(line));
  const known = new Set(statements.filter(({ database }) => database !== 'sqlite').map(({ sql }) => sql));
  return statements.filter(({ sql }) => {
    const isNew = !known.has(sql);
    known.add(sql);
    return isNew;
  });
}

/** @param {RecordedStatement[]} statements */
export function coverageMessage(statements) {
  return [
    `${statements.length} statements of the service ran on SQLite, but not on MariaDB.`,
    'Add a file that tests them to ON_BOTH_DATABASES in test/test-files.ts:',
    ...statements.map(({ sql, testFile }) => `  ${testFile.replace(/.*\/test\//, 'test/')}: ${sql}`),
  ].join('\n');
}
