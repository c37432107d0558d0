// @ts-check
/**
 * `npm run check:image`: carries out the production stage of the Dockerfile in a folder, without a container engine,
 * and runs the service there as a user who owns none of the files. The files must be the expected ones, the health
 * check must pass, and the service must end on SIGTERM.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildIfStale } from './build.js';

const PROJECT = dirname(import.meta.dirname);
const START_TIMEOUT_MS = 30_000;
const DOCKERFILE = readFileSync(join(PROJECT, 'Dockerfile'), 'utf8');
/** Loads the packages that the service loads at their first use: its start would not notice that one is missing. */
const LOAD_LAZY_PACKAGES =
  "require('@node-rs/argon2').hashSync('x'); import('jose'); require('class-validator-jsonschema')";

buildIfStale();
const folder = mkdtempSync(join(tmpdir(), 'image-'));
const root = join(folder, 'customer-authorization-service'); // npm writes the name of the folder into the SBOM
const environment = {
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
  ...Object.fromEntries(
    match(/^ENV (.+)$/m)
      .split(' ')
      .map((each) => each.split('=')),
  ),
  DATA_DIR: join(folder, 'data'),
  AUTH_URL: 'http://localhost:3000',
  PORT: '0',
  MANAGEMENT_PORT: '0',
  HOST: '127.0.0.1',
};
try {
  simulateImage();
  checkFiles();
  await checkService();
  const megabytes = execFileSync('du', ['-sm', root], { encoding: 'utf8' }).split('\t')[0];
  console.log(`passed: the image has ${megabytes} MB in addition to Node`);
} finally {
  spawnSync('chmod', ['-R', 'u+w', folder]);
  rmSync(folder, { recursive: true, force: true });
}

/** @param {RegExp} pattern */
function match(pattern) {
  const [, found] = pattern.exec(DOCKERFILE) ?? [];
  if (found === undefined) throw new Error(`Dockerfile: no line matches ${pattern}`);
  return found;
}

function simulateImage() {
  mkdirSync(root);
  for (const step of match(/^FROM \S+ AS production\n([\s\S]*?)\nFROM /m).split('\n')) carryOut(step);
  execFileSync('chmod', ['-R', 'a-w,a+rX', root]);
  chmodSync(folder, 0o755);
  mkdirSync(environment.DATA_DIR);
  chmodSync(environment.DATA_DIR, 0o777);
}

/** @param {string} step an instruction of the Dockerfile */
function carryOut(step) {
  const [, instruction, parameters = ''] = /^([A-Z]+) (.+)$/.exec(step) ?? [];
  const command = parameters.replace(/^--mount=\S+ /, '');
  if (instruction === 'RUN')
    execFileSync('sh', ['-c', command], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  if (instruction !== 'COPY') return;
  const [, source, target] = /^--from=build \/build\/(\S+) (\S+)$/.exec(parameters) ?? [];
  if (source && target) return cpSync(join(PROJECT, source), join(root, target), { recursive: true });
  for (const path of parameters.split(' ').slice(0, -1)) cpSync(join(PROJECT, path), join(root, basename(path)));
}

function checkFiles() {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' });
  const unused = files.filter((name) => /\.(map|ts)$/.test(name) || /\/README\.md$/i.test(name));
  if (unused.length > 0) throw new Error(`the image has files that the service does not use: ${unused.slice(0, 5)}`);
  const tryIt = files.filter((name) => /try-it|demo-|(^|\/)qr(\/|\.js)/.test(name));
  if (tryIt.length > 0) throw new Error(`the image has files of the try-it page: ${tryIt.slice(0, 5)}`);
  if (!files.some((name) => /\/LICENSE\.md$/.test(name))) throw new Error('the image has no licenses of its packages');
  if (!existsSync(join(root, 'dist/main.js'))) throw new Error('the image has no dist/main.js');
  /** @type {{ components: { name: string }[] }} */
  const { components } = JSON.parse(readFileSync(join(root, 'sbom.cdx.json'), 'utf8'));
  const names = components.map(({ name }) => name);
  const wrong = names.filter((name) => name === 'vitest' || name.startsWith('@customer-authorization/'));
  if (!names.includes('typeorm') || wrong.length > 0) throw new Error(`sbom.cdx.json has the wrong packages: ${wrong}`);
}

async function checkService() {
  const [program, ...parameters] = JSON.parse(match(/^CMD (\[.+\])$/m));
  const service = spawn(program, parameters, { ...asUser(), stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  service.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  try {
    const [, port = ''] = await until(() => /port (\d+) for the cluster/.exec(output));
    const healthCheck = JSON.parse(match(/^ +CMD (\[.+\])$/m));
    if (run(healthCheck, port) !== 0) throw new Error('HEALTHCHECK fails although the service listens');
    if (run(healthCheck, '1') !== 1) throw new Error('HEALTHCHECK succeeds although no service listens');
    if (run(['node', '--eval', LOAD_LAZY_PACKAGES], port) !== 0)
      throw new Error('a package that is loaded at its first use is missing');
    const ended = once(service, 'exit');
    service.kill('SIGTERM');
    const [code] = await ended;
    if (code !== 0) throw new Error(`the service ended with ${code} after SIGTERM`);
  } finally {
    service.kill('SIGKILL');
  }
}

/** The options of a process in the image. Only root can become another user. */
function asUser() {
  const [uid, gid] = match(/^USER (\d+:\d+)$/m)
    .split(':')
    .map(Number);
  return { cwd: root, env: environment, ...(process.getuid?.() === 0 && { uid, gid }) };
}

/**
 * Runs a program next to the service. Returns its exit code. @param {string[]} command @param {string} managementPort
 */
function run([program = '', ...parameters], managementPort) {
  const env = { ...environment, MANAGEMENT_PORT: managementPort };
  return spawnSync(program, parameters, { ...asUser(), env, stdio: ['ignore', 'inherit', 'inherit'] }).status;
}

/** @template Value @param {() => Value | null} find @returns {Promise<Value>} */
async function until(find) {
  for (let waitedMs = 0; waitedMs < START_TIMEOUT_MS; waitedMs += 50) {
    const found = find();
    if (found) return found;
    await sleep(50);
  }
  throw new Error('the service did not start');
}
