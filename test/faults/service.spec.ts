import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServiceProcess } from '../support/processes.js';
import { FaultyHouse, underLoad } from './faults.js';

const ROUNDS = 4;

let house: FaultyHouse;
/** Two processes; one of them ends and is replaced. */
const processes: ServiceProcess[] = [];
const urls = () => processes.map(({ url }) => url);

beforeAll(async () => {
  house = await FaultyHouse.build();
  processes.push(await house.start(), await house.start());
});
afterAll(() => house?.remove());

describe('whenever a process ends under load, no code gives two tokens and no customer is lost', () => {
  it('SIGTERM: every request is answered, and the process exits with 0', async () => {
    const codes: (number | null)[] = [];
    const { statuses } = await underLoad(urls, async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const [old] = processes.splice(0, 1, await house.start()) as [ServiceProcess];
        codes.push(await old.terminate());
      }
    });
    expect(codes).toEqual(Array(ROUNDS).fill(0));
    expect(statuses.none).toBeUndefined();
  });

  it('kill -9: what was answered holds, and the other process goes on', async () => {
    const { statuses } = await underLoad(urls, async () => {
      for (let round = 0; round < ROUNDS; round++) {
        processes[0]?.process.signal('SIGKILL');
        await sleep(300);
        processes[0] = await house.start();
      }
    });
    expect(statuses.none).toBeGreaterThan(0);
  });
});
