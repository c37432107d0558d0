/**
 * `npm run bench:open`: measures response times under an open load: requests begin at a constant rate, however long
 * earlier ones take, and the time of each counts from its planned begin. The rates are parts of the highest one, that
 * of the closed load of `npm run bench`. Each figure is the median of five rounds in turn. Takes 3 minutes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Table } from './support/figures.js';
import { load, median, ROUND_SECONDS, rounded, type Times, type Work } from './support/measure.js';
import { RawConnection } from './support/raw-connection.js';
import { visits } from './support/routes.js';
import { SERVICE } from './support/server.js';
import { benchmark } from './support/setup.js';
import { seedCustomers } from './support/site.js';

const ROUND_COUNT = 5;
const RATE_PARTS = [0.5, 0.8];
/** More requests under way wait in this process. */
const CONNECTION_COUNT = 128;
const TICK_MS = 1;

await benchmark('npm run bench:open', '1G', async ({ connection, start }) => {
  await seedCustomers(connection, 1, 20_000);
  const service = await start(SERVICE);
  const rows: Table = {};
  for (const { name, requests } of visits()) {
    const work = { url: service.url, requests: requests(), seconds: ROUND_SECONDS };
    await load(work); // warms up
    const { rate: highest } = await load(work);
    const rounds: Record<string, Times[]> = {};
    for (let round = 0; round < ROUND_COUNT; round++) {
      add(`${name}, closed load`, await load(work));
      for (const part of RATE_PARTS) add(`${name}, ${part * 100}% of the rate`, await openLoad(work, part * highest));
    }
    for (const [row, times] of Object.entries(rounds)) rows[row] = columnsOf(times);
    console.table(rows);

    function add(row: string, times: Times): void {
      rounds[row] = [...(rounds[row] ?? []), times];
    }
  }
  return [rows];
});

/** @throws the error of the first request that fails */
async function openLoad({ url, requests, seconds }: Work, rate: number): Promise<Times> {
  const connections = Array.from({ length: CONNECTION_COUNT }, () => new RawConnection(url));
  const idle = [...connections];
  const planned: number[] = [];
  const milliseconds: number[] = [];
  const sending: Promise<void>[] = [];
  let [sent, bytes] = [0, 0];
  let failure: unknown;
  const begun = performance.now();
  for (let count = 0; count < rate * seconds && !failure; await sleep(TICK_MS))
    for (; count < ((performance.now() - begun) / 1000) * rate; count++) {
      planned.push(begun + (count * 1000) / rate);
      const free = idle.pop();
      if (free) sending.push(sendPlanned(free).catch(fail));
    }
  await Promise.all(sending);
  const achieved = (milliseconds.length * 1000) / (performance.now() - begun);
  for (const connection of connections) connection.close();
  if (failure) throw failure;
  const sorted = milliseconds.toSorted((one, other) => one - other);
  const at = (part: number) => sorted[Math.floor(part * sorted.length)] ?? Number.NaN;
  return { rate: achieved, bytes: bytes / sorted.length, p50: at(0.5), p99: at(0.99), p999: at(0.999) };

  async function sendPlanned(connection: RawConnection): Promise<void> {
    for (let at = planned.shift(); at !== undefined; at = planned.shift()) {
      const { head, body } = await connection.send(requests[sent++ % requests.length] ?? '');
      if (!head.startsWith('HTTP/1.1 200 ')) throw new Error(`${head}\n${body}`);
      milliseconds.push(performance.now() - at);
      bytes += head.length + body.length;
    }
    idle.push(connection);
  }

  function fail(error: unknown): void {
    failure ??= error;
  }
}

function columnsOf(rounds: Times[]): Table[string] {
  const medianOf = (figure: keyof Times) => median(rounds.map((times) => times[figure]));
  return {
    'requests/s': Math.round(medianOf('rate')),
    'p50 ms': rounded(medianOf('p50')),
    'p99 ms': rounded(medianOf('p99')),
    'p99.9 ms': rounded(medianOf('p999')),
  };
}
