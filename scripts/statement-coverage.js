// @ts-check

/** @typedef {{ database: string, sql: string, testFile: string }} RecordedStatement */

const DATABASES = ['sqlite', 'mariadb'];

/**
 * What is wrong with the statements of a run on both databases, for people. A database without a record means that the
 * recorder did not work, so that the comparison would prove nothing.
 * @param {string} records one JSON object per line (test/support/statement-recorder.ts)
 */
export function coverageProblem(records) {
  const recorded = new Set(parsed(records).map(({ database }) => database));
  const missing = DATABASES.filter((database) => !recorded.has(database));
  if (missing.length > 0) return `No statement of the service was recorded on ${missing.join(' and ')}.`;
  const uncovered = statementsOnSqliteOnly(records);
  return uncovered.length > 0 ? coverageMessage(uncovered) : undefined;
}

/**
 * The statements of the service that ran on SQLite only, with the test file that sent them first.
 * @param {string} records
 * @returns {RecordedStatement[]}
 */
function statementsOnSqliteOnly(records) {
  const statements = parsed(records);
  const known = new Set(statements.filter(({ database }) => database !== 'sqlite').map(({ sql }) => sql));
  return statements.filter(({ sql }) => {
    const isNew = !known.has(sql);
    known.add(sql);
    return isNew;
  });
}

/** @param {string} records @returns {RecordedStatement[]} */
function parsed(records) {
  const lines = records.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line));
}

/** @param {RecordedStatement[]} statements */
function coverageMessage(statements) {
  return [
    `${statements.length} statements of the service ran on SQLite, but not on MariaDB.`,
    'Move a file that tests them to the folder both-databases of its subject:',
    ...statements.map(({ sql, testFile }) => `  ${testFile.replace(/.*\/test\//, 'test/')}: ${sql}`),
  ].join('\n');
}
