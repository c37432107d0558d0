// @ts-check
// What `npm test` runs: vitest, with a private MariaDB and a browser for the tests that want one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { buildIfStale } from './build.js';
import { findChromium } from './chromium.js';
import { findMariadb, startMariadb } from './mariadb.js';
import { findRedis } from './redis.js';

const PROJECT = dirname(import.meta.dirname);
const VITEST = join(PROJECT, 'node_modules/vitest/vitest.mjs');

const WITHOUT_DATABASE = [
  'The MariaDB half of the tests did NOT run: no server was found, or it did not start.',
  'To run it:  apt-get install mariadb-server-core mariadb-client-core',
  'or set      TEST_DATABASE_URL=mariadb://USER:PASSWORD@HOST:PORT/  (an account that may create databases)',
];

const WITHOUT_BROWSER = [
  'The browser half of the tests did NOT run: no Chromium was found.',
  'To run it:  apt-get install chromium',
  'or set      TEST_CHROMIUM=/path/to/chromium',
];

const WITHOUT_REDIS = [
  'The tests of shared rate limits did NOT run: no Redis server was found.',
  'To run them: apt-get install redis-server',
  'or set       TEST_REDIS_SERVER=/path/to/redis-server',
];

process.exitCode = await main(process.argv.slice(2));

/** @param {string[]} args */
async function main(args) {
  if (!build()) return 1;
  const chromium = process.env.TEST_CHROMIUM || findChromium({ install: true });
  const redis = process.env.TEST_REDIS_SERVER || findRedis({ install: true });
  const database = await provideDatabase();
  const folder = mkdtempSync(join(tmpdir(), 'vitest-'));
  const report = join(folder, 'report.json');
  try {
    const env = {
      ...process.env,
      TEST_CHROMIUM: chromium,
      TEST_REDIS_SERVER: redis,
      TEST_DATABASE_URL: database?.url,
    };
    const code = await vitest([...args, '--reporter=default', '--reporter=json', `--outputFile.json=${report}`], env);
    const missing = [
      ...(database ? [] : WITHOUT_DATABASE),
      ...(chromium ? [] : WITHOUT_BROWSER),
      ...(redis ? [] : WITHOUT_REDIS),
    ];
    if (missing.length > 0) console.error(framed(missing));
    if (existsSync(report)) console.log(summary(report, code));
    return code === 0 && missing.length > 0 && process.env.CI === 'true' ? 1 : code;
  } finally {
    await database?.stop();
    rmSync(folder, { recursive: true });
  }
}

function build() {
  try {
    buildIfStale();
    return true;
  } catch (error) {
    console.error(/** @type {Error} */ (error).message);
    return false;
  }
}

/** @returns {Promise<{ url: string, stop: () => Promise<void> } | undefined>} */
async function provideDatabase() {
  const url = process.env.TEST_DATABASE_URL;
  if (url) return { url, stop: async () => {} };
  if (!findMariadb({ install: true })) return undefined;
  try {
    const server = await startMariadb();
    return { url: server.url(), stop: server.stop };
  } catch (error) {
    console.error(/** @type {Error} */ (error).message);
    return undefined;
  }
}

/**
 * Runs vitest and answers its exit code. A signal for us is one for vitest; we stay to stop the server.
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<number>}
 */
async function vitest(args, env) {
  const run = spawn(process.execPath, [VITEST, 'run', ...args], { cwd: PROJECT, env, stdio: 'inherit' });
  process.on('SIGINT', () => run.kill('SIGINT'));
  process.on('SIGTERM', () => run.kill('SIGTERM'));
  await once(run, 'exit');
  return run.exitCode ?? 128 + constants.signals[run.signalCode ?? 'SIGKILL'];
}

/**
 * A run that failed never says `0 failed`, even if what failed was no test: a file that cannot be loaded, a hook.
 * @param {string} report file of vitest's json reporter
 * @param {number} code
 */
function summary(report, code) {
  const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, 'utf8'));
  const failed = Math.max(numFailedTests, code === 0 ? 0 : 1);
  return `${numPassedTests} passed, ${failed} failed${numPendingTests ? `, ${numPendingTests} skipped` : ''}`;
}

/** @param {string[]} lines */
function framed(lines) {
  const width = Math.max(...lines.map((line) => line.length));
  const edge = '#'.repeat(width + 4);
  return ['', edge, ...lines.map((line) => `# ${line.padEnd(width)} #`), edge, ''].join('\n');
}
