// @ts-check
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { NO_INSTALL } from './programs.js';

const PROJECT = dirname(import.meta.dirname);
const VITEST = join(PROJECT, 'node_modules/vitest/vitest.mjs');

/**
 * Runs vitest and resolves to its exit code. Signals are forwarded to vitest, and the caller can then stop its own
 * processes.
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} environment in addition to that of this process
 * @returns {Promise<number>}
 */
export async function runVitest(args, environment) {
  const env = { ...process.env, ...environment };
  const own = args.filter((arg) => arg !== NO_INSTALL);
  const run = spawn(process.execPath, [VITEST, 'run', ...own], { cwd: PROJECT, env, stdio: 'inherit' });
  process.on('SIGINT', () => run.kill('SIGINT'));
  process.on('SIGTERM', () => run.kill('SIGTERM'));
  await once(run, 'exit');
  return run.exitCode ?? 128 + constants.signals[run.signalCode ?? 'SIGKILL'];
}
