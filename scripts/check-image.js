// @ts-check
/**
 * `npm run check:image`: checks the content of the image without a container engine. It installs the production
 * packages into an empty folder with the command of the Dockerfile, and copies the built service there. The files are
 * read-only, and the service runs as a user who owns none of them. It must pass the image's health check, and end on
 * SIGTERM.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildIfStale } from './build.js';

const PROJECT = dirname(import.meta.dirname);
const START_TIMEOUT_MS = 10_000;

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
  loadLazyPackages();
  await run();
  const megabytes = Number(execFileSync('du', ['-sm', root], { encoding: 'utf8' }).split('\t')[0]);
  console.log(`the image would ship ${megabytes} MB in addition to Node`);
} finally {
  spawnSync('chmod', ['-R', 'u+w', root]);
  rmSync(folder, { recursive: true, force: true });
}

/** Loads the packages that the service loads at their first use: its start would not notice that one is missing. */
function loadLazyPackages() {
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
  let output = '';
  service.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  const [, port] = await until(() => /port (\d+) for the cluster/.exec(output));
  const [node = '', ...probe] = JSON.parse(health);
  const probeOptions = { env: { ...env, MANAGEMENT_PORT: port }, cwd: root, ...asUser };
  execFileSync(node, probe, probeOptions);
  if (spawnSync(node, probe, { ...probeOptions, env: { ...env, MANAGEMENT_PORT: '1' } }).status !== 1)
    throw new Error('HEALTHCHECK succeeds although no service listens');
  service.kill('SIGTERM');
  const [code] = await once(service, 'exit');
  if (code !== 0) throw new Error(`the service ended with ${code} after SIGTERM`);
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

/** @param {RegExp} pattern */
function match(pattern) {
  const found = pattern.exec(dockerfile);
  if (!found) throw new Error(`Dockerfile: no line matches ${pattern}`);
  return found;
}
