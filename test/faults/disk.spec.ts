import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServiceProcess } from '../support/processes.js';
import { FaultTestEnvironment, underLoad, untilServing } from './faults.js';

/** A small file system for the database. Only root can mount it. */
const disk = mkdtempSync(join(tmpdir(), 'disk-'));
const originalTmpdir = process.env.TMPDIR;
const isMounted = mounts();

let testEnvironment: FaultTestEnvironment;
let service: ServiceProcess;

beforeAll(async () => {
  if (!isMounted) return;
  process.env.TMPDIR = disk;
  testEnvironment = await FaultTestEnvironment.build(['--innodb-data-file-path=ibdata1:12M:autoextend']);
  service = await testEnvironment.start();
});
afterAll(async () => {
  await testEnvironment?.remove();
  if (originalTmpdir === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = originalTmpdir;
  if (isMounted) execFileSync('umount', ['-l', disk]);
  rmSync(disk, { recursive: true, force: true });
});

describe.skipIf(!isMounted)('if the disk of the database is full', () => {
  it('requests that write get 503, no data is lost, and the service recovers when there is space again', async () => {
    const filler = join(disk, 'filler');
    const { statuses } = await underLoad(
      () => [service.url],
      async ({ history }) => {
        fillUp(filler);
        const fullAt = performance.now();
        for (let waited = 0; waited < 20_000 && !history.some(({ status }) => status === 503); waited += 100)
          await sleep(100);
        await sleep(2_000);
        const during = history.filter(({ begun }) => begun > fullAt);
        expect(during.some(({ status }) => status === 503)).toBe(true);
        rmSync(filler);
        await untilServing(service);
      },
    );
    expect(statuses.none).toBeUndefined();
  });
});

/** Fills the disk. ENOSPC is expected, because the database may use the free space at the same time. */
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
