// @ts-check
import { load } from './load.js';
import { cpuTime } from './server.js';

/**
 * @typedef {object} Measured the cost and the times of one kind of request on one server
 * @property {number} rate requests per second
 * @property {number} cpu processor time of the server per request, in microseconds
 * @property {number} databaseCpu processor time of the database per request, in microseconds
 * @property {number} statements per request
 * @property {number} written bytes that the database wrote to its log and its files per request
 * @property {number} bytes size of a response
 * @property {number} p50 milliseconds
 * @property {number} p99 milliseconds
 */

/**
 * A database and the connection through which its counters are read.
 *
 * @typedef {{ pid: () => number, connection: import('mysql2/promise').Connection }} Observed
 */

const COUNTERS = ['Questions', 'Innodb_data_written', 'Innodb_os_log_written'];

/**
 * @param {import('./server.js').Server} server @param {Observed} database
 * @param {Parameters<typeof load>[0]} work
 * @returns {Promise<Measured>}
 */
export async function measure(server, database, work) {
  const before = await counters(server, database);
  const { requests, ...times } = await load(work);
  const after = await counters(server, database);
  const each = (/** @type {keyof typeof after} */ counter) => (after[counter] - before[counter]) / requests;
  return {
    ...times,
    cpu: each('cpu') * 1e6,
    databaseCpu: each('databaseCpu') * 1e6,
    statements: each('statements'),
    written: each('written'),
  };
}

/**
 * A round with a failed request is measured once more, because a pause of the machine must not end a long run.
 *
 * @template Result @param {string} name @param {() => Promise<Result>} round
 */
export async function againAfterFailure(name, round) {
  try {
    return await round();
  } catch (error) {
    console.error(`${name}: a round is repeated, because ${/** @type {Error} */ (error).message}`);
    return round();
  }
}

/** @param {import('./server.js').Server} server @param {Observed} database */
async function counters(server, { pid, connection }) {
  const [rows] = await connection.query('SHOW GLOBAL STATUS WHERE Variable_name IN (?)', [COUNTERS]);
  const values = /** @type {{ Variable_name: string, Value: string }[]} */ (rows);
  const of = (/** @type {string} */ name) => Number(values.find((row) => row.Variable_name === name)?.Value);
  return {
    cpu: cpuTime(server.pid),
    databaseCpu: cpuTime(pid()),
    statements: of('Questions'),
    written: of('Innodb_data_written') + of('Innodb_os_log_written'),
  };
}

/**
 * The median of each figure.
 *
 * @param {Measured[]} rounds @returns {Measured}
 */
export function medians(rounds) {
  const names = /** @type {(keyof Measured)[]} */ (Object.keys(rounds[0] ?? {}));
  const figures = names.map((name) => [name, median(rounds.map((round) => round[name]))]);
  return Object.fromEntries(figures);
}

/** @param {number[]} values */
export function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
