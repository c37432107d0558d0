// @ts-check
/**
 * `npm run check:image`: what the Dockerfile would ship, without a container engine. Production packages are installed into
 * an empty folder as the image does it, the built service is put beside them, all of it read-only and run by a user who
 * owns nothing there; its health is asked by the image's own command, and SIGTERM ends it.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildIfStale } from './build.js';

const PROJECT = dirname(import.meta.dirname);
const LONGEST_START = 10_000;

const dockerfile = readFileSync(join(PROJECT, 'Dockerfile'), 'utf8');
const [, user = ''] = match(/^USER (\d+):\d+$/m);
const [, command = ''] = match(/^CMD (\[.+\])$/m);
const [, health = ''] = match(/^ +CMD (\[.+\])$/m);
const [, install = ''] = match(/^RUN (npm ci --omit=dev .+)$/m);
const [, variables = ''] = match(/^ENV (.+)$/m);

const asUser = process.getuid?.() === 0 ? { uid: Number(user), gid: Number(user) } : {};

buildIfStale();
const folder = mkdtempSync(join(tmpdir(), 'image-'));
const root = join(folder, 'service');
const data = join(folder, 'data');
try {
  mkdirSync(root);
  for (const file of ['package.json', 'package-lock.json']) cpSync(join(PROJECT, file), join(root, file));
  execFileSync('sh', ['-c', install], { cwd: root, stdio: 'inherit' });
  rmSync(join(root, 'package-lock.json'));
  cpSync(join(PROJECT, 'dist'), join(root, 'dist'), { recursive: true });
  execFileSync('chmod', ['-R', 'a-w,a+rX', root]);
  chmodSync(folder, 0o755);
  mkdirSync(data);
  chmodSync(data, 0o777);
  loadWhatStartsDoNot();
  await run();
  const megabytes = Number(execFileSync('du', ['-sm', root], { encoding: 'utf8' }).split('\t')[0]);
  console.log(`the image would ship ${megabytes} MB beside Node`);
} finally {
  spawnSync('chmod', ['-R', 'u+w', root]);
  rmSync(folder, { recursive: true, force: true });
}

/** Packages that are loaded when they are first used, which no start would miss. */
function loadWhatStartsDoNot() {
  const program = "require('@node-rs/argon2').hashSync('x'); import('jose'); require('class-validator-jsonschema')";
  execFileSync(process.execPath, ['--eval', program], { cwd: root, stdio: 'inherit', ...asUser });
}

async function run() {
  const env = {
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    ...Object.fromEntries(variables.split(' ').map((each) => each.split('='))),
    DATA_DIR: data,
    AUTH_URL: 'http://localhost:3000',
    PORT: '0',
    MANAGEMENT_PORT: '0',
    HOST: '127.0.0.1',
  };
  const [program = '', ...parameters] = JSON.parse(command);
  const service = spawn(program, parameters, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'], ...asUser });
  let said = '';
  service.stdout.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  const [, port] = await until(() => /port (\d+) for the cluster/.exec(said));
  const [node = '', ...probe] = JSON.parse(health);
  const probing = { env: { ...env, MANAGEMENT_PORT: port }, cwd: root, ...asUser };
  execFileSync(node, probe, probing);
  if (spawnSync(node, probe, { ...probing, env: { ...env, MANAGEMENT_PORT: '1' } }).status !== 1)
    throw new Error('HEALTHCHECK finds what is not there healthy');
  service.kill('SIGTERM');
  const [code] = await once(service, 'exit');
  if (code !== 0) throw new Error(`SIGTERM ended it with ${code}`);
}

/** @template Value @param {() => Value | null} find @returns {Promise<Value>} */
async function until(find) {
  for (let waited = 0; waited < LONGEST_START; waited += 50) {
    const found = find();
    if (found) return found;
    await sleep(50);
  }
  throw new Error('the service did not start');
}

/** @param {RegExp} pattern */
function match(pattern) {
  const found = pattern.exec(dockerfile);
  if (!found) throw new Error(`Dockerfile: nothing like ${pattern}`);
  return found;
}
