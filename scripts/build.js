// @ts-check
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROJECT = dirname(import.meta.dirname);
const NEST = fileURLToPath(import.meta.resolve('@nestjs/cli/bin/nest.js'));
const STAMP = join(PROJECT, 'dist/.built');
const CONFIGURATION = /^(package|package-lock|nest-cli|tsconfig.*)\.json$/;

/** Compiles the service into dist/, unless nothing changed since the last time. Throws what the compiler said. */
export function buildIfStale() {
  if (!isStale()) return;
  console.error('building…');
  const start = new Date();
  const nest = spawnSync(process.execPath, [NEST, 'build'], { cwd: PROJECT, encoding: 'utf8' });
  if (nest.status !== 0) throw new Error(`The build failed:\n${nest.stdout}${nest.stderr}`, { cause: nest.error });
  writeFileSync(STAMP, '');
  utimesSync(STAMP, start, start); // what is saved during a build makes the next one
}

function isStale() {
  const built = statSync(STAMP, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return inputs().some((path) => statSync(path).mtimeMs > built);
}

/** Folders too: theirs is the time of a removal. */
function inputs() {
  const configuration = readdirSync(PROJECT).filter((name) => CONFIGURATION.test(name));
  const sources = readdirSync(join(PROJECT, 'src'), { recursive: true, encoding: 'utf8' });
  return [...configuration, 'src', ...sources.map((name) => join('src', name))].map((name) => join(PROJECT, name));
}

if (import.meta.filename === process.argv[1]) {
  try {
    buildIfStale();
  } catch (error) {
    console.error(/** @type {Error} */ (error).message);
    process.exitCode = 1;
  }
}
