// @ts-check
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../scripts/free-port.js';

const START_TIMEOUT_MS = 60_000;

const [, command = '[]'] =
  /^CMD (\[.+\])$/m.exec(readFileSync(join(import.meta.dirname, '../Dockerfile'), 'utf8')) ?? [];
/** How the image starts the service: what follows `node`. */
export const SERVICE = /** @type {string[]} */ (JSON.parse(command)).slice(1);

/**
 * @typedef {object} Server
 * @property {number} pid
 * @property {number} port
 * @property {number} managementPort equal to `port` if the server has only one port
 * @property {number} startMs milliseconds from the start of the process to its first response
 * @property {string} log the path of its log
 * @property {(signal?: NodeJS.Signals) => Promise<unknown[]>} stop resolves to the exit code and the signal
 * @property {() => void} kill
 */

/**
 * Starts a server as a process. Its log goes to a file, as in a cluster. With a pipe, the measurement would include the
 * reader of the pipe.
 *
 * @param {string[]} program what follows `node` @param {NodeJS.ProcessEnv} env @param {string} log
 * @returns {Promise<Server>}
 */
export async function startServer(program, env, log) {
  const [port, managementPort] = [await freePort(), await freePort()];
  const startedAt = performance.now();
  const ports = { PORT: String(port), MANAGEMENT_PORT: String(managementPort) };
  const stdio = /** @type {const} */ (['ignore', openSync(log, 'w'), 'inherit']);
  const child = spawn(process.execPath, program, { env: { ...env, ...ports }, stdio: [...stdio] });
  const stop = (/** @type {NodeJS.Signals} */ signal = 'SIGINT') => {
    const ended = once(child, 'exit');
    child.kill(signal);
    return ended;
  };
  while (performance.now() < startedAt + START_TIMEOUT_MS) {
    if (await isReachable(port)) {
      const startMs = performance.now() - startedAt;
      const hasManagementPort = program === SERVICE;
      const pid = Number(child.pid);
      return {
        pid,
        port,
        managementPort: hasManagementPort ? managementPort : port,
        startMs,
        log,
        stop,
        kill: () => void child.kill('SIGKILL'),
      };
    }
    await sleep(2);
  }
  child.kill('SIGKILL');
  throw new Error(`${program.join(' ')} did not start: ${readFileSync(log, 'utf8')}`);
}

/** @param {number} port */
function isReachable(port) {
  return fetch(`http://127.0.0.1:${port}/.well-known/jwks.json`).then(
    (response) => response.text().then(() => true),
    () => false,
  );
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
