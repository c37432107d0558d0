// @ts-check
// `npm test`: runs vitest, with a private MariaDB, Chromium and a Redis server for the tests that need them.
// `npm run test:processes`: runs the tests that start processes of the built service, npm or documented commands.
// `npm run test:firefox`: runs the browser tests in Firefox.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildIfStale } from './build.js';
import { installPrograms, waysToGet, withoutNoInstall } from './install-programs.js';
import { startMariadb } from './mariadb.js';
import { runVitest } from './run-vitest.js';
import { coverageMessage, statementsOnSqliteOnly } from './statement-coverage.js';
import { databaseFolder, planLines, skippedGroups, skippedLine, TEST_COMMANDS } from './test-plan.js';
import { CHROMIUM, FIREFOX, MARIADB, REDIS } from './test-programs.js';

/** The argument of `npm run test:processes`. */
const PROCESSES = '--processes';

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(/** @type {Error} */ (error).message);
  process.exitCode = 1;
}

/** @param {string[]} args */
async function main(args) {
  const { TEST_DATABASE_URL } = process.env;
  const command = commandOf(args);
  const needsFirefox = command === 'npm run test:firefox'; // it drives the tests several times slower than Chromium
  const others = command === 'npm test' ? [CHROMIUM, REDIS] : [];
  const programs = needsFirefox ? [FIREFOX] : [...others, ...(TEST_DATABASE_URL ? [] : [MARIADB])];
  const missing = installPrograms(programs, { command, args });
  const filters = withoutNoInstall(args).filter((arg) => arg !== PROCESSES);
  console.log(planLines({ command, missing, isFiltered: filters.length > 0 }).join('\n'));
  buildIfStale();
  const database = TEST_DATABASE_URL || needsFirefox ? undefined : await startDatabase(missing);
  const folder = mkdtempSync(join(tmpdir(), 'vitest-'));
  const report = join(folder, 'report.json');
  const statements = join(folder, 'statements.jsonl');
  try {
    const projects = filters.length > 0 ? [] : TEST_COMMANDS[command].projects.filter(isPossible(missing));
    const selection = projects.flatMap((name) => ['--project', name]);
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const vitestCode = await runVitest([...filters, ...selection, ...reporters], {
      TEST_CHROMIUM: path(CHROMIUM),
      TEST_FIREFOX: needsFirefox ? path(FIREFOX) : undefined,
      TEST_REDIS_SERVER: path(REDIS),
      TEST_DATABASE_URL: TEST_DATABASE_URL ?? database?.url(),
      TEST_DATABASE_FOLDER: databaseFolder(),
      TEST_STATEMENTS_FILE: projects.includes('mariadb') ? statements : undefined,
    });
    const uncovered = existsSync(statements) ? statementsOnSqliteOnly(readFileSync(statements, 'utf8')) : [];
    if (uncovered.length > 0) console.error(coverageMessage(uncovered));
    const code = vitestCode === 0 && uncovered.length > 0 ? 1 : vitestCode;
    const skipped = missing.flatMap((program) => [skippedLine(program), ...waysToGet([program])]);
    if (skipped.length > 0) console.error(framed(skipped));
    if (existsSync(report)) console.log(summary(JSON.parse(readFileSync(report, 'utf8')), code));
    return code === 0 && skipped.length > 0 && process.env.CI === 'true' ? 1 : code;
  } finally {
    await database?.stop();
    rmSync(folder, { recursive: true });
  }
}

/** @param {string[]} args @returns {keyof typeof TEST_COMMANDS} */
function commandOf(args) {
  if (args.some((arg) => arg.endsWith('firefox'))) return 'npm run test:firefox';
  return args.includes(PROCESSES) ? 'npm run test:processes' : 'npm test';
}

/**
 * Whether a project's database or browser was found.
 * @param {import('./test-programs.js').TestProgram[]} missing
 */
function isPossible(missing) {
  /** @param {string} project */
  return (project) => {
    if (project.endsWith('chromium')) return !missing.includes(CHROMIUM);
    return !project.endsWith('mariadb') || !missing.includes(MARIADB);
  };
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
 * The groups of tests that were skipped, and the result in one line. A failed run never reports `0 failed`, also if a
 * hook or the import of a test file failed.
 * @param {any} report of vitest's json reporter
 * @param {number} code
 */
function summary(report, code) {
  const { numPassedTests, numFailedTests, numPendingTests } = report;
  const failed = Math.max(numFailedTests, code === 0 ? 0 : 1);
  const result = `${numPassedTests} passed, ${failed} failed${numPendingTests ? `, ${numPendingTests} skipped` : ''}`;
  return [...skippedGroups(report), result].join('\n');
}

/** @param {string[]} lines */
function framed(lines) {
  const width = Math.max(...lines.map((line) => line.length));
  const edge = '#'.repeat(width + 4);
  return ['', edge, ...lines.map((line) => `# ${line.padEnd(width)} #`), edge, ''].join('\n');
}
