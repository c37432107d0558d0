import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFaketime } from '../../scripts/programs.js';
import type { ServiceProcess } from '../support/processes.js';
import { SettableClock } from '../support/settable-clock.js';
import { FaultTestEnvironment, underLoad } from './faults.js';

let testEnvironment: FaultTestEnvironment;
let steady: ServiceProcess;
let stepping: ServiceProcess;
let clock: SettableClock;

beforeAll(async () => {
  testEnvironment = await FaultTestEnvironment.build();
  clock = new SettableClock(testEnvironment.folder);
  steady = await testEnvironment.start();
  stepping = await testEnvironment.start(clock.environment);
});
afterAll(() => testEnvironment?.remove());

describe.skipIf(!findFaketime())('if the clock of one of two processes is stepped', () => {
  it('back and forth by a minute, the protocol is not violated and every customer is served', async () => {
    const { statuses } = await underLoad(
      () => [steady.url, stepping.url],
      async ({ history }) => {
        for (const seconds of [-60, 0, 60, -60, 0]) {
          clock.set(seconds);
          await sleep(2_500);
        }
        const failed = history.filter(({ kind, status }) => ['new', 'return'].includes(kind) && status !== 200);
        expect(failed).toEqual([]);
      },
    );
    expect(statuses.none).toBeUndefined();
    // A token from a clock ahead is not yet valid for the other process (RFC 9068), which responds with 401.
    expect(statuses['401']).toBeGreaterThan(0);
  });
});
