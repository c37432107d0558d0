// @ts-check
import { spawn } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds. */
const LONGEST_START = 10_000;

/**
 * @typedef {object} Server
 * @property {number} pid
 * @property {number} port
 * @property {number} managementPort the same port where the server has one only
 * @property {number} started milliseconds from the start of its process to its first answer
 * @property {() => void} kill
 */

/**
 * Starts a server that says its ports, as a process of its own. Its log goes to a file, as in a cluster: a pipe would
 * measure its reader too, and fill up without one.
 *
 * @param {string} file @param {NodeJS.ProcessEnv} env @param {string} log @returns {Promise<Server>}
 */
export async function startServer(file, env, log) {
  const begun = performance.now();
  const child = spawn(process.execPath, [file], { env, stdio: ['ignore', openSync(log, 'w'), 'inherit'] });
  while (performance.now() < begun + LONGEST_START) {
    const [port, managementPort = port] = Array.from(readFileSync(log, 'utf8').matchAll(/port (\d+)/g), ([, n]) =>
      Number(n),
    );
    if (port && managementPort) {
      await fetch(`http://127.0.0.1:${port}/.well-known/jwks.json`);
      const started = performance.now() - begun;
      return { pid: Number(child.pid), port, managementPort, started, kill: () => void child.kill('SIGKILL') };
    }
    await sleep(2);
  }
  child.kill('SIGKILL');
  throw new Error(`${file} did not start: ${readFileSync(log, 'utf8')}`);
}

/** Seconds of processor time that a process has used. @param {number} pid */
export function cpuTime(pid) {
  const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
  const [user = 0, system = 0] = fields.split(' ').slice(11, 13).map(Number);
  return (user + system) / 100;
}

/** Megabytes that a process occupies. @param {number} pid */
export function memory(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}
