import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RowDataPacket } from 'mysql2/promise';
import { installPrograms, WRK } from '../../scripts/programs.js';
import { cpuTime, type Server } from './server.js';
import type { Setup } from './setup.js';

const SCRIPT = join(import.meta.dirname, 'load.lua');
/** Of each measurement. */
export const ROUND_SECONDS = Number(process.env.BENCH_SECONDS ?? 4);
const COUNTERS = ['Questions', 'Innodb_data_written', 'Innodb_os_log_written'];

/** Requests that wrk sends in turn: their bytes on the socket. */
export interface Work {
  url: string;
  requests: string[];
  seconds: number;
  connections?: number;
}

/** Requests per second, the average size of a response, and response times in milliseconds. */
export interface Times {
  rate: number;
  bytes: number;
  p50: number;
  p99: number;
  p999: number;
}

/** With the cost of one request: processor time in microseconds, statements, and bytes that the database wrote. */
export interface Measured extends Times {
  cpu: number;
  databaseCpu: number;
  statements: number;
  written: number;
}

let fileCount = 0;

/** Each connection sends its next request after the last response. Throws if a request fails. */
export async function load({ url, requests, seconds, connections = 32 }: Work): Promise<Times & { count: number }> {
  const [missing] = installPrograms([WRK], process.argv);
  if (missing) throw new Error(`the load generator is missing: ${missing.command}`);
  const file = join(tmpdir(), `load-${process.pid}-${fileCount++}`);
  writeFileSync(file, `${requests.join('\0')}\0`);
  try {
    const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', SCRIPT, url, '--', file];
    const { stdout } = await promisify(execFile)(WRK.find() as string, options);
    const { count, failed, microseconds, bytes, p50, p99, p999 } = JSON.parse(/^\{.*\}$/m.exec(stdout)?.[0] ?? '');
    if (failed > 0) throw new Error(`${failed} of ${count} requests failed:\n${requests[0]}`);
    const times = { p50: p50 / 1000, p99: p99 / 1000, p999: p999 / 1000 };
    return { count, rate: (count * 1e6) / microseconds, bytes: bytes / count, ...times };
  } finally {
    rmSync(file);
  }
}

/** Loads a server. A round with a failed request is repeated once: a pause of the machine must not end a long run. */
export function measure(server: Server, setup: Setup, work: Work): Promise<Measured> {
  return measureOnce(server, setup, work).catch((error) => {
    console.error('a round is repeated:', error);
    return measureOnce(server, setup, work);
  });
}

async function measureOnce(server: Server, setup: Setup, work: Work): Promise<Measured> {
  const before = await counters(server, setup);
  const { count, ...times } = await load(work);
  const after = await counters(server, setup);
  const each = (counter: keyof typeof after) => (after[counter] - before[counter]) / count;
  return {
    ...times,
    cpu: each('cpu') * 1e6,
    databaseCpu: each('databaseCpu') * 1e6,
    statements: each('statements'),
    written: each('written'),
  };
}

async function counters(server: Server, { database, connection }: Setup) {
  const query = 'SHOW GLOBAL STATUS WHERE Variable_name IN (?)';
  const [rows] = await connection.query<RowDataPacket[]>(query, [COUNTERS]);
  const of = (name: string) => Number(rows.find((row) => row.Variable_name === name)?.Value);
  return {
    cpu: cpuTime(server.pid),
    databaseCpu: cpuTime(database.pid()),
    statements: of('Questions'),
    written: of('Innodb_data_written') + of('Innodb_os_log_written'),
  };
}

/**
 * The processor time of one call in microseconds, on all threads of the process: the median of the rounds, in which the
 * ways take turns. The first round warms up.
 */
export async function measureCalls(
  ways: Record<string, (index: number) => unknown>,
  { rounds, calls }: { rounds: number; calls: number },
) {
  const figures = Object.fromEntries(Object.keys(ways).map((name) => [name, [] as number[]]));
  for (let round = 0; round <= rounds; round++)
    for (const [name, call] of Object.entries(ways)) {
      const before = process.cpuUsage();
      for (let index = 0; index < calls; index++) await call(index);
      const { user, system } = process.cpuUsage(before);
      if (round > 0) figures[name]?.push((user + system) / calls);
    }
  const rows = Object.entries(figures).map(([name, values]) => [name, { 'CPU µs': rounded(median(values)) }]);
  return Object.fromEntries(rows) as Record<string, { 'CPU µs': number }>;
}

/** The median of each figure. */
export function medians(rounds: Measured[]): Measured {
  const names = Object.keys(rounds[0] ?? {}) as (keyof Measured)[];
  return Object.fromEntries(names.map((name) => [name, median(rounds.map((round) => round[name]))])) as never;
}

export function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** With one digit after the point. */
export function rounded(value: number): number {
  return Number(value.toFixed(1));
}

/** The columns that the tables of requests have in common. */
export function columnsOf({ rate, cpu, databaseCpu, statements, p50, p99 }: Measured) {
  return {
    'requests/s': Math.round(rate),
    'CPU µs': Math.round(cpu),
    'database µs': Math.round(databaseCpu),
    statements: rounded(statements),
    'p50 ms': rounded(p50),
    'p99 ms': rounded(p99),
  };
}
