import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../scripts/free-port.js';

const START_TIMEOUT_MS = 60_000;
const [, command = '[]'] =
  /^CMD (\[.+\])$/m.exec(readFileSync(join(import.meta.dirname, '../../Dockerfile'), 'utf8')) ?? [];

/** How the image starts the service: what follows `node`. */
export const SERVICE: string[] = JSON.parse(command).slice(1);

export interface Server {
  pid: number;
  url: string;
  managementUrl: string;
  /** From the start of the process to its first response. */
  startMs: number;
  log: string;
  /** Resolves to the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts a server. Its log goes to a file as in a cluster: a pipe would add the work of its reader. */
export async function startServer(program: string[], env: NodeJS.ProcessEnv, log: string): Promise<Server> {
  const [port, managementPort] = [await freePort(), await freePort()];
  const startedAt = performance.now();
  const child = spawn(process.execPath, program, {
    env: { ...env, PORT: String(port), MANAGEMENT_PORT: String(managementPort) },
    stdio: ['ignore', openSync(log, 'w'), 'inherit'],
  });
  const url = `http://127.0.0.1:${port}`;
  while (!(await isReachable(url))) {
    if (child.exitCode !== null || performance.now() > startedAt + START_TIMEOUT_MS) {
      child.kill('SIGKILL');
      throw new Error(`${program.join(' ')} did not start: ${readFileSync(log, 'utf8')}`);
    }
    await sleep(2);
  }
  return {
    pid: child.pid as number,
    url,
    managementUrl: `http://127.0.0.1:${managementPort}`,
    startMs: performance.now() - startedAt,
    log,
    async stop(signal = 'SIGINT') {
      const ended = once(child, 'exit');
      child.kill(signal);
      const [code] = await ended;
      return code;
    },
  };
}

function isReachable(url: string): Promise<boolean> {
  return fetch(`${url}/.well-known/jwks.json`).then(
    (response) => response.text().then(() => true),
    () => false,
  );
}

/** Seconds of processor time that a process has used. */
export function cpuTime(pid: number): number {
  const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
  const [user = 0, system = 0] = fields.split(' ').slice(11, 13).map(Number);
  return (user + system) / 100;
}

/** Megabytes that a process occupies. */
export function memory(pid: number): number {
  return megabytes(pid, /VmRSS:\s+(\d+)/);
}

/** The most megabytes that a process has occupied since its start. */
export function highestMemory(pid: number): number {
  return megabytes(pid, /VmHWM:\s+(\d+)/);
}

function megabytes(pid: number, pattern: RegExp): number {
  return Number(pattern.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}
