// @ts-check
import { spawnSync } from 'node:child_process';
import { copyFileSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROJECT = dirname(import.meta.dirname);
const TRY_IT = join(PROJECT, 'packages/try-it');
const BROWSER_CLIENT = join(PROJECT, 'packages/browser-client');
/** The files of browser-client that the try-it page loads. */
const CLIENT_FILES_OF_TRY_IT = ['request-error.js', 'verifier.js'];
const tsc = fileURLToPath(import.meta.resolve('typescript/bin/tsc'));
const CONFIGURATION_FILE = /^(package|package-lock|nest-cli|tsconfig.*)\.json$/;

/** Compiles the service into dist/, if a source changed since the last build. Throws the compiler's output. */
export function buildIfStale() {
  const nest = fileURLToPath(import.meta.resolve('@nestjs/cli/bin/nest.js'));
  compileIfStale(PROJECT, [nest, 'build']);
}

/** Compiles the try-it page too, with the client that its scripts use and the declarations of the built service. */
export function buildTryItIfStale() {
  buildIfStale();
  buildBrowserClientIfStale();
  compileIfStale(TRY_IT, [tsc, '-p', 'tsconfig.build.json']);
  for (const name of CLIENT_FILES_OF_TRY_IT)
    copyFileSync(join(BROWSER_CLIENT, 'dist', name), join(TRY_IT, 'dist', name));
}

function buildBrowserClientIfStale() {
  compileIfStale(BROWSER_CLIENT, [tsc, '-p', 'tsconfig.build.json']);
}

/** @param {string} folder @param {string[]} command a program of a package, and its arguments */
function compileIfStale(folder, command) {
  const stamp = join(folder, 'dist/.built');
  if (!isStale(folder, stamp)) return;
  console.error('building…');
  const start = new Date();
  const { status, stdout, stderr, error } = spawnSync(process.execPath, command, {
    cwd: folder,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`The build failed:\n${stdout}${stderr}`, { cause: error });
  writeFileSync(stamp, '');
  utimesSync(stamp, start, start); // a file that is saved during a build makes the build stale
}

/** @param {string} folder @param {string} stamp */
function isStale(folder, stamp) {
  const built = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return inputs(folder).some((path) => statSync(path).mtimeMs > built);
}

/** Includes folders, because the time of a folder changes when a file in it is removed. @param {string} folder */
function inputs(folder) {
  const configuration = readdirSync(folder).filter((name) => CONFIGURATION_FILE.test(name));
  const sources = readdirSync(join(folder, 'src'), { recursive: true, encoding: 'utf8' });
  return [...configuration, 'src', ...sources.map((name) => join('src', name))].map((name) => join(folder, name));
}

if (import.meta.filename === process.argv[1]) {
  try {
    if (process.argv.includes('--try-it')) buildTryItIfStale();
    else if (process.argv.includes('--browser-client')) buildBrowserClientIfStale();
    else buildIfStale();
  } catch (error) {
    console.error(/** @type {Error} */ (error).message);
    process.exitCode = 1;
  }
}
