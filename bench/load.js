// @ts-check
import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installPrograms } from '../scripts/install-programs.js';
import { WRK } from '../scripts/test-programs.js';

const SCRIPT = join(import.meta.dirname, 'load.lua');
const run = promisify(execFile);
let runs = 0;

/** The path of wrk. If wrk is missing, it is installed. */
export function findWrk() {
  const [missing] = installPrograms([WRK], { command: 'npm run bench', args: process.argv });
  if (missing) throw new Error(`the load generator is missing: ${missing.command}`);
  return /** @type {string} */ (WRK.find());
}

/**
 * Loads a server with requests, in turn, by wrk. Each connection sends its next request after the last response.
 *
 * @param {{ port: number, requests: string[], seconds: number, connections?: number }} options `requests`: their
 *   bytes on the socket
 * @returns {Promise<{ requests: number, rate: number, bytes: number, p50: number, p99: number }>} `rate`: requests per
 *   second, `bytes`: average size of a response, `p50` and `p99`: milliseconds
 * @throws Error if a request fails
 */
export async function load({ port, requests, seconds, connections = 32 }) {
  const file = join(tmpdir(), `load-${process.pid}-${runs++}`);
  writeFileSync(file, `${requests.join('\0')}\0`);
  try {
    const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', SCRIPT, `http://127.0.0.1:${port}`, '--', file];
    const { stdout } = await run(findWrk(), options);
    const result = JSON.parse(/^\{.*\}$/m.exec(stdout)?.[0] ?? '');
    if (result.failed > 0) throw new Error(`${result.failed} of ${result.requests} requests failed:\n${requests[0]}`);
    return {
      requests: result.requests,
      rate: (result.requests * 1e6) / result.microseconds,
      bytes: result.bytes / result.requests,
      p50: result.p50 / 1000,
      p99: result.p99 / 1000,
    };
  } finally {
    rmSync(file);
  }
}
