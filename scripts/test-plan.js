// @ts-check
import { statfsSync } from 'node:fs';
import { CHROMIUM, FIREFOX, MARIADB, REDIS } from './test-programs.js';

/** @typedef {import('./test-programs.js').TestProgram} TestProgram */

/** The projects of vitest that each command runs, and how long they take on two cores. */
export const TEST_COMMANDS = {
  'npm test': {
    projects: ['unit', 'sqlite', 'isolated', 'mariadb', 'isolated-mariadb', 'chromium', 'isolated-chromium'],
    minutes: 8,
  },
  'npm run test:processes': { projects: ['processes', 'processes-mariadb'], minutes: 6 },
  'npm run test:firefox': { projects: ['firefox', 'isolated-firefox'], minutes: 10 },
};

const MEMORY_FOLDER = '/dev/shm';
const MIN_MEMORY_BYTES = 2 ** 31;

/** The tests of each project, or the tests that need a program. @type {Record<string, string>} */
const CONTENT = {
  unit: 'unit tests',
  sqlite: 'end-to-end tests on SQLite',
  isolated: 'those with modules of their own',
  mariadb: 'end-to-end tests on MariaDB',
  'isolated-mariadb': 'those with modules of their own',
  chromium: 'browser tests in Chromium',
  'isolated-chromium': 'those with modules of their own',
  firefox: 'browser tests in Firefox',
  'isolated-firefox': 'those with modules of their own',
  processes: 'tests of processes, packages and documented commands, on SQLite',
  'processes-mariadb': 'tests of processes on MariaDB',
};

/** The tests that do not run without a program. */
const SKIPPED = new Map([
  [MARIADB, 'The MariaDB half of the tests did NOT run: no server was found, or it did not start.'],
  [CHROMIUM, 'The browser tests did NOT run in Chromium: no Chromium was found.'],
  [FIREFOX, 'The browser tests did NOT run in Firefox: no Firefox was found.'],
  [REDIS, 'The tests of shared rate limits did NOT run: no Redis server was found.'],
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
  const { projects, minutes } = TEST_COMMANDS[command];
  const server = process.env.TEST_DATABASE_URL ? 'the server of TEST_DATABASE_URL' : found(MARIADB, missing);
  const needsMariadb = projects.some((name) => name.endsWith('mariadb'));
  return [
    `${command} found:`,
    '  database SQLite: built in',
    ...(needsMariadb ? [`  database MariaDB: ${server}`] : []),
    ...(projects.includes('chromium') ? [`  browser Chromium: ${found(CHROMIUM, missing)}`] : []),
    ...(projects.includes('firefox') ? [`  browser Firefox: ${found(FIREFOX, missing)}`] : []),
    ...(projects.includes('unit') ? [`  Redis server: ${found(REDIS, missing)}`] : []),
    ...(isFiltered
      ? ['It runs the tests that its arguments name.']
      : [
          `It runs ${projects.map((name) => CONTENT[name]).join(', ')}.`,
          `This takes about ${minutes} minutes on two cores. docs/testing.md lists the other commands.`,
        ]),
  ];
}

/** @param {TestProgram} program @param {TestProgram[]} missing */
function found(program, missing) {
  return missing.includes(program) ? 'none' : String(program.find());
}

/**
 * Groups of tests that vitest skipped, one line each.
 * @param {{ testResults: { name: string, assertionResults: TestResult[] }[] }} report of vitest's json reporter
 * @typedef {{ status: string, ancestorTitles: string[], title: string }} TestResult
 */
export function skippedGroups({ testResults }) {
  /** @type {Map<string, number>} */
  const skipped = new Map();
  const ran = new Set();
  for (const { name, assertionResults } of testResults) {
    for (const { status, ancestorTitles, title } of assertionResults) {
      const group = `${name.replace(/.*\/(test|packages)\//, '$1/')} › ${ancestorTitles[0] ?? title}`;
      if (status === 'passed' || status === 'failed') ran.add(group);
      else skipped.set(group, (skipped.get(group) ?? 0) + 1);
    }
  }
  return [...skipped].map(([group, count]) => {
    const reason = ran.has(group) ? 'ran on the other database' : 'needs a program, a system or a variable';
    return `skipped ${count} of ${group} (${reason})`;
  });
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
