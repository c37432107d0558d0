// @ts-check
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROJECT = dirname(import.meta.dirname);
const NEST = fileURLToPath(import.meta.resolve('@nestjs/cli/bin/nest.js'));
const STAMP = join(PROJECT, 'dist/.built');
const CONFIGURATION_FILE = /^(package|package-lock|nest-cli|tsconfig.*)\.json$/;

/** Compiles the service into dist/, if a source changed since the last build. Throws the compiler's output. */
export function buildIfStale() {
  if (!isStale()) return;
  console.error('building…');
  const start = new Date();
  const nest = spawnSync(process.execPath, [NEST, 'build'], { cwd: PROJECT, encoding: 'utf8' });
  if (nest.status !== 0) throw new Error(`The build failed:\n${nest.stdout}${nest.stderr}`, { cause: nest.error });
  copySwaggerUi();
  copyQrEncoder();
  writeFileSync(STAMP, '');
  utimesSync(STAMP, start, start); // a file that is saved during a build makes the build stale
}

/** Copies the files of /docs with their licences (src/openapi/openapi.controller.ts). */
function copySwaggerUi() {
  const source = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/swagger-ui.css')));
  const target = join(PROJECT, 'dist/openapi/swagger-ui');
  mkdirSync(target, { recursive: true });
  for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js', 'swagger-ui-bundle.js.LICENSE.txt'])
    copyFileSync(join(source, name), join(target, name));
  for (const name of ['LICENSE', 'NOTICE']) copyFileSync(join(source, name), join(target, `${name}.txt`));
}

/** Copies the encoder of QR codes with its licence (src/try-it/page-files.ts). */
function copyQrEncoder() {
  const source = fileURLToPath(import.meta.resolve('qr'));
  const target = join(PROJECT, 'dist/try-it/page');
  copyFileSync(source, join(target, 'qr.js'));
  copyFileSync(join(dirname(source), 'LICENSE-MIT'), join(target, 'qr.js.LICENSE.txt'));
}

function isStale() {
  const built = statSync(STAMP, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return inputs().some((path) => statSync(path).mtimeMs > built);
}

/** Includes folders, because the time of a folder changes when a file in it is removed. */
function inputs() {
  const configuration = readdirSync(PROJECT).filter((name) => CONFIGURATION_FILE.test(name));
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
