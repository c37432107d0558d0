import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServiceProcess } from '../support/processes.js';
import { FaultTestEnvironment, underLoad } from './faults.js';

/** Debian's libfaketime, which gives a process another time than the machine. */
const LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1';

let testEnvironment: FaultTestEnvironment;
let steady: ServiceProcess;
let stepping: ServiceProcess;
let file: string;

/** Sets the offset of the clock of one process from the clock of the machine. */
const step = (seconds: number) => writeFileSync(file, `${seconds >= 0 ? '+' : ''}${seconds}\n`);

beforeAll(async () => {
  testEnvironment = await FaultTestEnvironment.build();
  file = join(testEnvironment.folder, 'clock');
  step(0);
  steady = await testEnvironment.start();
  stepping = await testEnvironment.start({
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  });
});
afterAll(() => testEnvironment?.remove());

describe.skipIf(!existsSync(LIBRARY))('if the clock of one of two processes is stepped', () => {
  it('back and forth by a minute, the protocol is not violated and every customer is served', async () => {
    const { statuses } = await underLoad(
      () => [steady.url, stepping.url],
      async ({ history }) => {
        for (const seconds of [-60, 0, 60, -60, 0]) {
          step(seconds);
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
