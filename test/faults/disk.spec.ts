import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServiceProcess } from '../support/processes.js';
import { FaultyHouse, underLoad, untilReady } from './faults.js';

/** A small file system for the database; only root can have one. */
const disk = mkdtempSync(join(tmpdir(), 'disk-'));
const before = process.env.TMPDIR;
const isMounted = mounts();

let house: FaultyHouse;
let service: ServiceProcess;

beforeAll(async () => {
  if (!isMounted) return;
  process.env.TMPDIR = disk;
  house = await FaultyHouse.build(['--innodb-data-file-path=ibdata1:12M:autoextend']);
  service = await house.start();
});
afterAll(async () => {
  await house?.remove();
  if (before === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = before;
  if (isMounted) execFileSync('umount', ['-l', disk]);
  rmSync(disk, { recursive: true, force: true });
});

describe.skipIf(!isMounted)("a full disk of the database's", () => {
  it('is answered with 503 where something must be written, and loses nothing; with room again, all is well', async () => {
    const filler = join(disk, 'filler');
    const { statuses } = await underLoad(
      () => [service.url],
      async ({ history }) => {
        fillUp(filler);
        const full = performance.now();
        for (let waited = 0; waited < 20_000 && !history.some(({ status }) => status === 503); waited += 100)
          await sleep(100);
        await sleep(2_000);
        const during = history.filter(({ begun }) => begun > full);
        expect(during.some(({ status }) => status === 503)).toBe(true);
        rmSync(filler);
        await untilReady(service);
      },
    );
    expect(statuses.none).toBeUndefined();
  });
});

/** The database writes meanwhile: what was free a moment ago may be more than there is. */
function fillUp(file: string): void {
  const { bavail, bsize } = statfsSync(disk);
  try {
    writeFileSync(file, Buffer.alloc(bavail * bsize));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

function mounts(): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=400m', 'tmpfs', disk], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
