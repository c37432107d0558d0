import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServiceProcess } from '../support/processes.js';
import { FaultyHouse, underLoad } from './faults.js';

/** Debian's libfaketime, by which a process sees another time than the machine. */
const LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1';

let house: FaultyHouse;
let steady: ServiceProcess;
let stepping: ServiceProcess;
let file: string;

/** Steps the clock of one process: so many seconds beside the machine's. */
const step = (seconds: number) => writeFileSync(file, `${seconds >= 0 ? '+' : ''}${seconds}\n`);

beforeAll(async () => {
  house = await FaultyHouse.build();
  file = join(house.folder, 'clock');
  step(0);
  steady = await house.start();
  stepping = await house.start({
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  });
});
afterAll(() => house?.remove());

describe.skipIf(!existsSync(LIBRARY))('a clock that is stepped', () => {
  it('back and forth by a minute, on one of two processes: every promise is kept, and every customer served', async () => {
    const { statuses } = await underLoad(
      () => [steady.url, stepping.url],
      async ({ history }) => {
        for (const seconds of [-60, 0, 60, -60, 0]) {
          step(seconds);
          await sleep(2_500);
        }
        const refused = history.filter(({ kind, status }) => ['new', 'return'].includes(kind) && status !== 200);
        expect(refused).toEqual([]);
      },
    );
    expect(statuses.none).toBeUndefined();
    expect(statuses['401']).toBeGreaterThan(0); // what one clock issues, another may not know yet (RFC 9068): no 5xx
  });
});
