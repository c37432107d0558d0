// @ts-check
// `npm test`: runs vitest, with a private MariaDB and Chromium for the tests that need them.
// `npm run test:processes`: runs the tests that start processes of the built service, npm or documented commands.
// `npm run test:firefox`: runs the browser tests in Firefox.
import { existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildIfStale } from './build.js';
import { startMariadb } from './mariadb.js';
import {
  CHROMIUM,
  FIREFOX,
  installPrograms,
  MARIADB,
  missingText,
  NEXTJS,
  NO_INSTALL,
  PROCESSES,
  PYTHON,
} from './programs.js';
import { runVitest } from './run-vitest.js';
import { coverageProblem } from './statement-coverage.js';

/** The projects of vitest that each command runs, and their programs, by the option that chooses the command. */
const COMMANDS = {
  '--all': {
    projects: ['unit', 'sqlite', 'isolated', 'mariadb', 'isolated-mariadb', 'chromium', 'isolated-chromium'],
    programs: [MARIADB, CHROMIUM],
  },
  '--processes': { projects: ['processes', 'processes-mariadb'], programs: PROCESSES },
  '--firefox': { projects: ['firefox', 'isolated-firefox'], programs: [FIREFOX] },
};
/**
 * The program that a project needs, by the last word of its name. @type {Record<string,
 * import('./programs.js').Program>}
 */
const PROGRAMS = { mariadb: MARIADB, chromium: CHROMIUM, firefox: FIREFOX };
const MEMORY_FOLDER = '/dev/shm';
const MIN_MEMORY_BYTES = 2 ** 31;

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(/** @type {Error} */ (error).message);
  process.exitCode = 1;
}

/** @param {string[]} args */
async function main(args) {
  const { TEST_DATABASE_URL, CI } = process.env;
  const option = args.includes('--processes') ? '--processes' : args.includes('--firefox') ? '--firefox' : '--all';
  const { projects, programs } = COMMANDS[option];
  const needed = programs.filter((program) => program !== MARIADB || !TEST_DATABASE_URL);
  const missing = installPrograms(needed, args);
  const filters = args.filter((arg) => arg !== option && arg !== NO_INSTALL);
  const possible = projects.filter((name) => !missing.some((program) => program === PROGRAMS[name.replace(/.*-/, '')]));
  if (possible.length === 0) throw new Error(missingText(missing));
  // The files of Firefox's projects are also those of Chromium's.
  const selected = filters.length === 0 || option === '--firefox' ? possible : [];
  buildIfStale();
  const database = needed.includes(MARIADB) && !missing.includes(MARIADB) ? await startMariadb() : undefined;
  const folder = mkdtempSync(join(tmpdir(), 'vitest-'));
  const statements = selected.includes('mariadb') ? join(folder, 'statements.jsonl') : undefined;
  try {
    const code = await runVitest([...filters, ...selected.flatMap((name) => ['--project', name])], {
      TEST_CHROMIUM: pathOf(CHROMIUM),
      TEST_FIREFOX: option === '--firefox' ? pathOf(FIREFOX) : undefined, // several times slower than Chromium
      TEST_PYTHON: pathOf(PYTHON),
      TEST_NEXTJS: pathOf(NEXTJS),
      TEST_DATABASE_URL: TEST_DATABASE_URL ?? database?.url(),
      TEST_DATABASE_FOLDER: databaseFolder(),
      TEST_STATEMENTS_FILE: statements,
      NODE_COMPILE_CACHE: join(folder, 'compiled'), // each module is compiled by the first process that loads it
    });
    const problem = statements && coverageProblem(existsSync(statements) ? readFileSync(statements, 'utf8') : '');
    if (problem) console.error(problem);
    if (missing.length > 0) console.error(missingText(missing));
    return code || (problem || (missing.length > 0 && CI === 'true') ? 1 : 0);
  } finally {
    await database?.stop();
    rmSync(folder, { recursive: true });
  }
}

/** @param {import('./programs.js').Program} program */
function pathOf(program) {
  return /** @type {string | undefined} */ (program.find());
}

/** A folder in memory for databases, because SQLite waits for the disk at each commit. */
function databaseFolder() {
  if (!existsSync(MEMORY_FOLDER)) return undefined;
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
  return bavail * bsize >= MIN_MEMORY_BYTES ? MEMORY_FOLDER : undefined;
}
