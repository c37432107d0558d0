// @ts-check
// What `npm run test:cluster` runs: the tests of three processes of the service on three Galera nodes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { buildIfStale } from './build.js';
import { startGalera } from './galera.js';

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
  const cluster = await startGalera();
  const figures = join(cluster.dir, 'figures');
  try {
    const env = { ...process.env, TEST_GALERA: cluster.dir, TEST_FIGURES: figures };
    // one after the other: what one does to the nodes, the next would notice; also that it failed half-way
    return await vitest(['run', '--project=cluster', '--no-file-parallelism', '--bail=1', ...args], env);
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
