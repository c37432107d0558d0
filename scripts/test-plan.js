// @ts-check
import { statfsSync } from 'node:fs';
import {
  CHROMIUM,
  FAKETIME,
  FIREFOX,
  KUSTOMIZE,
  MARIADB,
  MARIADB_BACKUP,
  NGINX,
  PROMTOOL,
  PYTHON,
} from './test-programs.js';

/** @typedef {import('./test-programs.js').TestProgram} TestProgram */

/** The projects of vitest that each command runs, the programs that they need, and how long they take on two cores. */
export const TEST_COMMANDS = {
  'npm test': {
    projects: ['unit', 'sqlite', 'isolated', 'mariadb', 'isolated-mariadb', 'chromium', 'isolated-chromium'],
    programs: [MARIADB, CHROMIUM],
    minutes: 6,
  },
  'npm run test:processes': {
    projects: ['processes', 'processes-mariadb'],
    programs: [MARIADB, MARIADB_BACKUP, FAKETIME, CHROMIUM, NGINX, PROMTOOL, KUSTOMIZE, PYTHON],
    minutes: 4,
  },
  'npm run test:firefox': { projects: ['firefox', 'isolated-firefox'], programs: [FIREFOX], minutes: 10 },
};

const MEMORY_FOLDER = '/dev/shm';
const MIN_MEMORY_BYTES = 2 ** 31;

/** The tests of each project, or the tests that need a program. @type {Record<string, string>} */
const CONTENT = {
  unit: 'unit tests',
  sqlite: 'end-to-end tests on SQLite',
  isolated: 'tests of extensions on SQLite',
  mariadb: 'end-to-end tests on MariaDB',
  'isolated-mariadb': 'tests of extensions on MariaDB',
  chromium: 'browser tests in Chromium',
  'isolated-chromium': 'browser tests of the example package in Chromium',
  firefox: 'browser tests in Firefox',
  'isolated-firefox': 'browser tests of the example package in Firefox',
  processes: 'tests of processes, packages and documented commands, on SQLite',
  'processes-mariadb': 'tests of processes on MariaDB',
};

/** The tests that do not run without a program. */
const SKIPPED = new Map([
  [MARIADB, 'The MariaDB half of the tests did NOT run: no server was found, or it did not start.'],
  [CHROMIUM, 'The browser tests did NOT run in Chromium: no Chromium was found.'],
  [FIREFOX, 'The browser tests did NOT run in Firefox: no Firefox was found.'],
  [MARIADB_BACKUP, 'The restore of MariaDB was NOT rehearsed: mariadb-backup or mariadb-dump was not found.'],
  [FAKETIME, 'The tests of clocks that differ did NOT run: no libfaketime was found.'],
  [NGINX, 'The tests of the nginx configuration did NOT run: no nginx was found.'],
  [KUSTOMIZE, 'The Kubernetes manifests were NOT built: neither kustomize nor kubectl was found.'],
  [PROMTOOL, 'The tests of the alerts did NOT run: no promtool was found.'],
  [PYTHON, 'The Python examples did NOT run: there is no Python with their packages.'],
]);

/** @param {TestProgram} program */
export const skippedLine = (program) => SKIPPED.get(program) ?? '';

/**
 * What a command found and what it will run, one line each.
 * @param {object} run
 * @param {keyof typeof TEST_COMMANDS} run.command
 * @param {TestProgram[]} run.missing
 * @param {boolean} run.isFiltered whether the arguments name files or projects
 */
export function planLines({ command, missing, isFiltered }) {
  const { programs, minutes } = TEST_COMMANDS[command];
  const projects = possibleProjects(command, missing);
  return [
    `${command} found:`,
    '  SQLite: built in',
    ...programs.map((program) => `  ${program.name}: ${found(program, missing)}`),
    ...(isFiltered
      ? ['It runs the tests that its arguments name.']
      : [
          `It runs ${projects.map((name) => CONTENT[name]).join(', ')}.`,
          `This takes about ${minutes} minutes on two cores. docs/testing.md lists the other commands.`,
        ]),
  ];
}

/**
 * The projects of a command whose database or browser was found.
 * @param {keyof typeof TEST_COMMANDS} command
 * @param {TestProgram[]} missing
 */
export function possibleProjects(command, missing) {
  return TEST_COMMANDS[command].projects.filter((name) => {
    if (name.endsWith('mariadb')) return !missing.includes(MARIADB);
    if (name.endsWith('chromium')) return !missing.includes(CHROMIUM);
    return !name.endsWith('firefox') || !missing.includes(FIREFOX);
  });
}

/** @param {TestProgram} program @param {TestProgram[]} missing */
function found(program, missing) {
  if (program === MARIADB && process.env.TEST_DATABASE_URL) return 'the server of TEST_DATABASE_URL';
  return missing.includes(program) ? 'none' : String(program.find());
}

/**
 * Groups of tests that vitest skipped, one line each.
 * @param {{ testResults: { name: string, assertionResults: TestResult[] }[] }} report of vitest's json reporter
 * @typedef {{ status: string, fullName: string, ancestorTitles: string[], title: string }} TestResult
 */
export function skippedGroups({ testResults }) {
  const results = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map((result) => ({ ...result, file: name.replace(/.*\/(test|packages)\//, '$1/') })),
  );
  const ran = new Set(results.filter(hasRun).map(testId));
  /** @type {Map<string, number>} */
  const skipped = new Map();
  for (const result of results.filter((other) => !hasRun(other))) {
    const reason = ran.has(testId(result)) ? 'ran on the other database' : 'needs a program, a system or a variable';
    const group = `${result.file} › ${result.ancestorTitles[0] ?? result.title} (${reason})`;
    skipped.set(group, (skipped.get(group) ?? 0) + 1);
  }
  return [...skipped].map(([group, count]) => `skipped ${count} of ${group}`);
}

/** @param {{ status: string }} result */
function hasRun({ status }) {
  return status === 'passed' || status === 'failed';
}

/** Names a test in all projects that have it. @param {{ file: string, fullName: string }} result */
function testId({ file, fullName }) {
  return `${file} ${fullName}`;
}

/** A folder in memory for databases, because SQLite waits for the disk at each commit. */
export function databaseFolder() {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
    return bavail * bsize >= MIN_MEMORY_BYTES ? MEMORY_FOLDER : undefined;
  } catch {
    return undefined;
  }
}
