import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServiceProcess } from '../support/processes.js';
import { FaultTestEnvironment, underLoad } from './faults.js';

const ROUND_COUNT = 4;

let testEnvironment: FaultTestEnvironment;
/** Two processes. The tests end and replace the first one. */
const processes: ServiceProcess[] = [];
const urls = () => processes.map(({ url }) => url);

beforeAll(async () => {
  testEnvironment = await FaultTestEnvironment.build();
  processes.push(await testEnvironment.start(), await testEnvironment.start());
});
afterAll(() => testEnvironment?.remove());

describe('if a process ends under load, no code gives two tokens and no customer is lost', () => {
  it('with SIGTERM, every request gets a response, and the process exits with 0', async () => {
    const codes: (number | null)[] = [];
    const { statuses } = await underLoad(urls, async () => {
      for (let round = 0; round < ROUND_COUNT; round++) {
        const [old] = processes.splice(0, 1, await testEnvironment.start()) as [ServiceProcess];
        codes.push(await old.terminate());
      }
    });
    expect(codes).toEqual(Array(ROUND_COUNT).fill(0));
    expect(statuses.none).toBeUndefined();
  });

  it('with SIGKILL, all successful responses stay valid, and the other process serves', async () => {
    const { statuses } = await underLoad(urls, async () => {
      for (let round = 0; round < ROUND_COUNT; round++) {
        processes[0]?.process.signal('SIGKILL');
        await sleep(300);
        processes[0] = await testEnvironment.start();
      }
    });
    expect(statuses.none).toBeGreaterThan(0);
  });
});
