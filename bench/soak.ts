/**
 * `npm run bench:soak`: two processes of the built service and a mixed load at a fixed rate for SOAK_MINUTES
 * (30), with two roll-outs, a key rotation, changes of the registry, a restart and a crash of the database. Checks each
 * response, counts the others, and samples memory and event loop of each process. Exits with 1 if a response is wrong or
 * an error has no explanation. SOAK_RATE is the number of sequences of requests per second (60).
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Caller, CallFailed } from './soak/caller.js';
import { Processes } from './soak/processes.js';
import { ADMIN_TOKENS, Sequences } from './soak/sequences.js';
import type { Table } from './support/figures.js';
import { median, rounded } from './support/measure.js';
import { SERVICE } from './support/server.js';
import { benchmark } from './support/setup.js';

const DURATION_MINUTES = Number(process.env.SOAK_MINUTES ?? 30);
const SEQUENCES_PER_SECOND_COUNT = Number(process.env.SOAK_RATE ?? 60);
const PREPARED_SESSION_COUNT = 10;
const TICK_MS = 10;
/** From the crash of the database to its start. */
const CRASH_MS = 2_000;
const MAX_PRINTED_COUNT = 20;

await benchmark('npm run bench:soak', '256M', async (setup) => {
  const { connection, database, environment, start } = setup;
  connection.destroy(); // it would not survive the crash
  const processes = new Processes(() => start(SERVICE, { ADMIN_TOKENS }));
  await processes.add();
  await processes.add();
  const caller = new Caller(processes);
  const sequences = new Sequences(caller);
  for (let session = 0; session < PREPARED_SESSION_COUNT; session++) await sequences.signInAgent();

  const begun = performance.now();
  const now = () => performance.now() - begun;
  const ended = new AbortController();
  const running = [processes.sample(ended.signal), runLoad(sequences, caller, ended.signal)];
  const events = await runEvents().finally(() => ended.abort());
  await Promise.all(running);

  for (const each of caller.wrong.slice(0, MAX_PRINTED_COUNT)) console.error(`wrong: ${each}`);
  printUnexplained(caller, processes);
  if (caller.wrong.length > 0 || caller.unexplained().length > 0) process.exitCode = 1;
  console.table(Object.fromEntries(caller.operations));
  return [{ 'the run': summaryRow(caller) }, events, processRows(processes)];

  /** Runs the events one after the other, each after its part of the run. */
  async function runEvents(): Promise<Table> {
    const rotateKeys = async () => {
      const [file, command] = [environment.SIGNING_KEYS_FILE, ['dist/cli.js', 'keys', 'rotate']];
      writeFileSync(file, execFileSync(process.execPath, command, { input: readFileSync(file) }));
    };
    const plan: [number, string, () => Promise<unknown>][] = [
      [0.08, 'registry change', () => sequences.changeRegistry()],
      [0.18, 'key rotation', rotateKeys],
      [0.28, 'roll-out', () => processes.rollOut()],
      [0.45, 'database restart', () => outage(0, () => database.shutDown())],
      [0.55, 'registry change', () => sequences.changeRegistry()],
      [0.62, 'roll-out', () => processes.rollOut()],
      [0.78, 'database crash', () => outage(CRASH_MS, () => database.crash())],
      [0.88, 'registry change', () => sequences.changeRegistry()],
    ];
    const done: Table = {};
    for (const [part, name, begin] of plan) {
      await sleep(Math.max(0, part * DURATION_MINUTES * 60_000 - now()));
      const from = now();
      console.log(`${Math.round(from / 1000)} s: ${name}`);
      await attempt(begin, caller);
      done[`${name}, after ${Math.round(from / 1000)} s`] = { 'takes s': rounded((now() - from) / 1000) };
    }
    await sleep(Math.max(0, DURATION_MINUTES * 60_000 - now()));
    return done;
  }

  async function outage(pauseMs: number, stop: () => Promise<void> | void): Promise<void> {
    const from = performance.now();
    await stop();
    await sleep(pauseMs);
    await database.restart();
    caller.outages.push({ from, to: performance.now() });
  }
});

/** Starts sequences at a fixed rate, also while earlier ones wait for their responses. Then waits for all of them. */
async function runLoad(sequences: Sequences, caller: Caller, signal: AbortSignal): Promise<void> {
  const begun = performance.now();
  const running = new Set<Promise<void>>();
  for (let started = 0; !signal.aborted; await sleep(TICK_MS))
    for (; started < ((performance.now() - begun) / 1000) * SEQUENCES_PER_SECOND_COUNT; started++) {
      const sequence = attempt(() => sequences.begin(), caller);
      running.add(sequence);
      sequence.finally(() => running.delete(sequence));
    }
  await Promise.all(running);
}

/** An error response is counted already. Another error means that a response is wrong. */
async function attempt(work: () => Promise<unknown>, { wrong }: Caller): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof CallFailed)) wrong.push(`${error}`);
  }
}

/** With the lines of the log. */
function printUnexplained(caller: Caller, { all }: Processes): void {
  const failures = caller.unexplained().slice(0, MAX_PRINTED_COUNT);
  const lines = failures.length > 0 ? all.flatMap(({ server }) => readFileSync(server.log, 'utf8').split('\n')) : [];
  for (const { call, status, requestId } of failures) {
    console.error(`unexplained: ${status} ${call}`);
    for (const line of lines) if (requestId && line.includes(requestId)) console.error(line);
  }
}

function summaryRow(caller: Caller): Table[string] {
  const tokens = [...caller.tokensByKey.values()];
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  const operations = [...caller.operations.values()];
  const unexplained = caller.unexplained().length;
  return {
    requests: sum(operations.map(({ requests }) => requests)),
    'errors that were asked for': sum(operations.map(({ wantedErrors }) => wantedErrors)),
    '503 in an outage': caller.failures.length - unexplained,
    'not explained': unexplained,
    'wrong responses': caller.wrong.length,
    'verified tokens': sum(tokens),
    'signing keys': tokens.length,
  };
}

function processRows({ all }: Processes): Table {
  const rows = all.map(({ samples }, index) => {
    const rss = samples.map(({ rssMb }) => rssMb);
    const most = (values: number[]) => Math.round(Math.max(...values));
    const row = {
      seconds: samples.length,
      'RSS MB, median of the first minute': Math.round(median(rss.slice(0, 60))),
      'of the last minute': Math.round(median(rss.slice(-60))),
      'most RSS MB': most(rss),
      'most heap MB': most(samples.map(({ heapMb }) => heapMb)),
      'longest lag ms': most(samples.map(({ lagMs }) => lagMs)),
    };
    return [`process ${index + 1}`, row];
  });
  return Object.fromEntries(rows);
}
