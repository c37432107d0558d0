// @ts-check
// What `npm run test:cluster` runs: the tests of three processes of the service on three Galera nodes, then on three MySQL servers.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { buildIfStale } from './build.js';
import { startGalera } from './galera.js';
import { startGroup } from './group-replication.js';

const PROJECT = dirname(import.meta.dirname);
const VITEST = join(PROJECT, 'node_modules/vitest/vitest.mjs');

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(/** @type {Error} */ (error).message);
  process.exitCode = 1;
}

/** @param {string[]} args */
async function main(args) {
  buildIfStale();
  const onGalera = await run('cluster', 'TEST_GALERA', await startGalera(), args);
  if (onGalera !== 0) return onGalera;
  const group = await startGroup();
  if (group) return run('group', 'TEST_GROUP', group, args);
  console.error('The tests on a MySQL group did NOT run: no MySQL server could be fetched.');
  return 0;
}

/**
 * The tests of one project on one cluster, one file after the other: what one does to the nodes, the next would notice.
 * @param {string} project
 * @param {string} variable names the cluster's folder to the tests
 * @param {{ dir: string, stop: () => Promise<void> }} cluster
 * @param {string[]} args
 */
async function run(project, variable, cluster, args) {
  const figures = join(cluster.dir, 'figures');
  try {
    const env = { ...process.env, [variable]: cluster.dir, TEST_FIGURES: figures };
    return await vitest(['run', `--project=${project}`, '--no-file-parallelism', ...args], env);
  } finally {
    if (existsSync(figures)) console.log(`Measured:\n${readFileSync(figures, 'utf8')}`);
    await cluster.stop();
  }
}

/**
 * Runs vitest and answers its exit code. A signal for us is one for vitest; we stay to stop the cluster.
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 */
async function vitest(args, env) {
  const run = spawn(process.execPath, [VITEST, ...args], { cwd: PROJECT, env, stdio: 'inherit' });
  process.on('SIGINT', () => run.kill('SIGINT'));
  process.on('SIGTERM', () => run.kill('SIGTERM'));
  await once(run, 'exit');
  return run.exitCode ?? 128 + constants.signals[run.signalCode ?? 'SIGKILL'];
}
