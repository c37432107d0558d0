// @ts-check
import { spawn } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds. */
const LONGEST_START = 10_000;

/** @typedef {{ child: import('node:child_process').ChildProcess, port: number }} Server */

/**
 * Starts a server that says its port, as a process of its own. Its log goes to a file, as in a cluster: a pipe would
 * measure its reader too, and fill up without one.
 *
 * @param {string} file @param {NodeJS.ProcessEnv} env @param {string} log @returns {Promise<Server>}
 */
export async function startServer(file, env, log) {
  const child = spawn(process.execPath, [file], { env, stdio: ['ignore', openSync(log, 'w'), 'inherit'] });
  for (let waited = 0; waited < LONGEST_START; waited += 50) {
    const [, port] = /port (\d+)/.exec(readFileSync(log, 'utf8')) ?? [];
    if (port) return { child, port: Number(port) };
    await sleep(50);
  }
  child.kill('SIGKILL');
  throw new Error(`${file} did not start: ${readFileSync(log, 'utf8')}`);
}
