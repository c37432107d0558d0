// @ts-check
// `npm test`: runs vitest, with a private MariaDB, a browser and a Redis server for the tests that need them.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildIfStale } from './build.js';
import { installPrograms, waysToGet, withoutNoInstall } from './install-programs.js';
import { startMariadb } from './mariadb.js';
import { runVitest } from './run-vitest.js';
import { CHROMIUM, MARIADB, REDIS } from './test-programs.js';

/** The tests that do not run without a program. */
const SKIPPED = new Map([
  [MARIADB, 'The MariaDB half of the tests did NOT run: no server was found, or it did not start.'],
  [CHROMIUM, 'The browser half of the tests did NOT run: no Chromium was found.'],
  [REDIS, 'The tests of shared rate limits did NOT run: no Redis server was found.'],
]);

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(/** @type {Error} */ (error).message);
  process.exitCode = 1;
}

/** @param {string[]} args */
async function main(args) {
  const { TEST_DATABASE_URL } = process.env;
  const programs = [CHROMIUM, REDIS, ...(TEST_DATABASE_URL ? [] : [MARIADB])];
  const missing = installPrograms(programs, { command: 'npm test', args });
  buildIfStale();
  const database = TEST_DATABASE_URL ? undefined : await startDatabase(missing);
  const folder = mkdtempSync(join(tmpdir(), 'vitest-'));
  const report = join(folder, 'report.json');
  try {
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const code = await runVitest([...withoutNoInstall(args), ...reporters], {
      TEST_CHROMIUM: path(CHROMIUM),
      TEST_REDIS_SERVER: path(REDIS),
      TEST_DATABASE_URL: TEST_DATABASE_URL ?? database?.url(),
    });
    const skipped = missing.flatMap((program) => [SKIPPED.get(program) ?? '', ...waysToGet([program])]);
    if (skipped.length > 0) console.error(framed(skipped));
    if (existsSync(report)) console.log(summary(report, code));
    return code === 0 && skipped.length > 0 && process.env.CI === 'true' ? 1 : code;
  } finally {
    await database?.stop();
    rmSync(folder, { recursive: true });
  }
}

/**
 * Starts a private server. A server that does not start counts as missing.
 * @param {import('./test-programs.js').TestProgram[]} missing
 */
async function startDatabase(missing) {
  if (missing.includes(MARIADB)) return undefined;
  try {
    return await startMariadb();
  } catch (error) {
    console.error(/** @type {Error} */ (error).message);
    missing.push(MARIADB);
    return undefined;
  }
}

/** @param {import('./test-programs.js').TestProgram} program */
function path(program) {
  return /** @type {string | undefined} */ (program.find());
}

/**
 * The result in one line. A failed run never reports `0 failed`, also if a hook or the import of a test file failed.
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
