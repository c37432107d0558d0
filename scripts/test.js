// @ts-check
// `npm test`: runs vitest, with a private MariaDB and Chromium for the tests that need them.
// `npm run test:processes`: runs the tests that start processes of the built service, npm or documented commands.
// `npm run test:firefox`: runs the browser tests in Firefox.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildIfStale } from './build.js';
import { installPrograms, waysToGet, withoutNoInstall } from './install-programs.js';
import { startMariadb } from './mariadb.js';
import { runVitest } from './run-vitest.js';
import { coverageProblem } from './statement-coverage.js';
import { databaseFolder, planLines, possibleProjects, skippedGroups, skippedLine, TEST_COMMANDS } from './test-plan.js';
import { CHROMIUM, FIREFOX, MARIADB, PYTHON } from './test-programs.js';

/** The arguments of `npm run test:processes` and of `npm run test:firefox`. */
const PROCESSES = '--processes';
const FIREFOX_ONLY = '--firefox';

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
  const programs = TEST_COMMANDS[command].programs.filter((program) => program !== MARIADB || !TEST_DATABASE_URL);
  const missing = installPrograms(programs, { command, args });
  const filters = withoutNoInstall(args).filter((arg) => arg !== PROCESSES && arg !== FIREFOX_ONLY);
  if (possibleProjects(command, missing).length === 0) {
    printSkipped(missing);
    return 1;
  }
  console.log(planLines({ command, missing, isFiltered: filters.length > 0 }).join('\n'));
  buildIfStale();
  const database = programs.includes(MARIADB) ? await startDatabase(missing) : undefined;
  const folder = mkdtempSync(join(tmpdir(), 'vitest-'));
  const report = join(folder, 'report.json');
  const statements = join(folder, 'statements.jsonl');
  try {
    // The files of Firefox's projects are also those of Chromium's.
    const selectsProjects = filters.length === 0 || command === 'npm run test:firefox';
    const projects = selectsProjects ? possibleProjects(command, missing) : [];
    const selection = projects.flatMap((name) => ['--project', name]);
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const recordsStatements = projects.includes('mariadb');
    const vitestCode = await runVitest([...filters, ...selection, ...reporters], {
      TEST_CHROMIUM: path(CHROMIUM),
      TEST_FIREFOX: programs.includes(FIREFOX) ? path(FIREFOX) : undefined, // several times slower than Chromium
      TEST_PYTHON: path(PYTHON),
      TEST_DATABASE_URL: TEST_DATABASE_URL ?? database?.url(),
      TEST_DATABASE_FOLDER: databaseFolder(),
      TEST_STATEMENTS_FILE: recordsStatements ? statements : undefined,
    });
    const problem = recordsStatements ? coverageProblem(contentOf(statements)) : undefined;
    if (problem) console.error(problem);
    printSkipped(missing);
    const isIncomplete = missing.length > 0 && process.env.CI === 'true';
    const code = vitestCode || (problem || isIncomplete ? 1 : 0);
    if (existsSync(report)) console.log(summary(JSON.parse(readFileSync(report, 'utf8')), code));
    return code;
  } finally {
    await database?.stop();
    rmSync(folder, { recursive: true });
  }
}

/** @param {string[]} args @returns {keyof typeof TEST_COMMANDS} */
function commandOf(args) {
  if (args.includes(FIREFOX_ONLY)) return 'npm run test:firefox';
  return args.includes(PROCESSES) ? 'npm run test:processes' : 'npm test';
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

/** Prints the tests that did not run, and how to get their programs. @param {import('./test-programs.js').TestProgram[]} missing */
function printSkipped(missing) {
  if (missing.length > 0) console.error(framed(missing.flatMap((each) => [skippedLine(each), ...waysToGet([each])])));
}

/** The text of a file, or an empty text if it does not exist. @param {string} file */
function contentOf(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** @param {string[]} lines */
function framed(lines) {
  const width = Math.max(...lines.map((line) => line.length));
  const edge = '#'.repeat(width + 4);
  return ['', edge, ...lines.map((line) => `# ${line.padEnd(width)} #`), edge, ''].join('\n');
}
