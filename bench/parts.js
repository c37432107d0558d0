// @ts-check
/**
 * `npm run bench:parts`: measures the parts of a request of which the floor uses the cheapest correct way: signatures,
 * hashes, and the statement that decides whether a token has ended. The ways take turns, and each figure is the median
 * of the rounds, with the lowest and the highest. The statements run on a private durable MariaDB. Takes a minute.
 * `--save` replaces the figures of docs/performance.md.
 */
import mysql from 'mysql2';
import { describeRun, isSaving, markdownTable, saveFigures } from './figures.js';
import { median } from './measure.js';
import { cpuTime } from './server.js';
import { withSetup } from './setup.js';
import { seedCustomers } from './site.js';

const ROUND_COUNT = 9;
const CALL_COUNT = 500;
const STATEMENTS_PER_ROUND = 2_000;
const CONCURRENT_STATEMENT_COUNT = 32;

await withSetup('512M', async ({ connection, pid, environment }) => {
  process.env.SIGNING_KEYS_FILE = environment.SIGNING_KEYS_FILE; // the floor reads both when it is imported
  process.env.DATABASE_URL = environment.DATABASE_URL;
  const { SIGNATURES } = await import('./parts/signatures.js');
  const { CUSTOMER_COUNT, claimsOf, STATEMENTS, seedEnded } = await import('./parts/statements.js');
  const calls = Object.entries(SIGNATURES).map(
    ([name, call]) => /** @type {const} */ ([name, () => callRepeatedly(call)]),
  );
  const ofCalls = await measureInTurn(calls, ['CPU µs']);
  console.table(ofCalls);

  await seedCustomers(connection, 1, CUSTOMER_COUNT);
  await seedEnded(connection);
  const pool = mysql.createPool({ uri: environment.DATABASE_URL, timezone: 'Z', connectionLimit: 10 });
  const statements = Object.entries(STATEMENTS).map(
    ([name, statement]) => /** @type {const} */ ([name, () => sendRepeatedly(pool, statement, claimsOf, pid())]),
  );
  const ofStatements = await measureInTurn(statements, ['CPU µs', 'database µs']);
  pool.end();
  console.table(ofStatements);
  const description = await describeRun('npm run bench:parts', connection);
  console.log(description);
  if (isSaving()) saveFigures('parts', [description, markdownTable(ofCalls), markdownTable(ofStatements)]);
});

/**
 * @param {(readonly [name: string, measure: () => Promise<number[]>])[]} ways
 * @param {string[]} columns the names of what `measure` returns
 */
async function measureInTurn(ways, columns) {
  const rounds = ways.map(() => /** @type {number[][]} */ ([]));
  for (let round = 0; round <= ROUND_COUNT; round++)
    for (const [index, [, measure]] of ways.entries()) {
      const figures = await measure();
      if (round > 0) rounds[index]?.push(figures); // the first round warms up
    }
  const rows = ways.map(([name], index) => {
    const cells = columns.map((column, at) => [column, spread((rounds[index] ?? []).map((each) => each[at] ?? 0))]);
    return [name, Object.fromEntries(cells)];
  });
  return Object.fromEntries(rows);
}

/** @param {number[]} values */
function spread(values) {
  const [middle, lowest, highest] = [median(values), Math.min(...values), Math.max(...values)];
  return `${middle.toFixed(1)} (${lowest.toFixed(1)} to ${highest.toFixed(1)})`;
}

/** The processor time of one call, in microseconds. @param {() => unknown} call */
async function callRepeatedly(call) {
  const before = process.cpuUsage();
  for (let count = 0; count < CALL_COUNT; count++) {
    const result = call();
    if ((result instanceof Promise ? await result : result) !== true) throw new Error(`${call} failed`);
  }
  return [cpuOf(before) / CALL_COUNT];
}

/**
 * The processor times of one statement, in microseconds: of this process and of the database.
 *
 * @param {mysql.Pool} pool @param {import('./parts/statements.js').MeasuredStatement} statement
 * @param {(n: number) => object} claimsOf @param {number} pid
 */
async function sendRepeatedly(pool, { sql, parametersOf }, claimsOf, pid) {
  const parameters = Array.from({ length: STATEMENTS_PER_ROUND }, (_, index) => parametersOf(claimsOf(index)));
  const [before, ofDatabase] = [process.cpuUsage(), cpuTime(pid)];
  const sendAll = async () => {
    for (let next = parameters.pop(); next; next = parameters.pop())
      await new Promise((resolve, reject) => {
        pool.execute(sql, next, (error, rows) => (error ? reject(error) : resolve(rows)));
      });
  };
  await Promise.all(Array.from({ length: CONCURRENT_STATEMENT_COUNT }, sendAll));
  const databaseMicroseconds = (cpuTime(pid) - ofDatabase) * 1e6;
  return [cpuOf(before) / STATEMENTS_PER_ROUND, databaseMicroseconds / STATEMENTS_PER_ROUND];
}

/** @param {NodeJS.CpuUsage} before */
function cpuOf(before) {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
