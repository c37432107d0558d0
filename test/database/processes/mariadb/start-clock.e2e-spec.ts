import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { onMariadb } from '../../../../packages/conformance-kit/src/test-database.js';
import { freePort } from '../../../../scripts/free-port.js';
import { findFaketime } from '../../../../scripts/programs.js';
import { useDatabase } from '../../../support/databases.js';
import { environmentOf, PORTS, startServiceProcess, TestProcess } from '../../../support/processes.js';
import { SettableClock } from '../../../support/settable-clock.js';
import { writeRegistry } from '../../../support/test-registry.js';
import { request } from '../../../support/test-service.js';

describe.skipIf(!onMariadb || !findFaketime())('a process whose clock differs from that of the database', () => {
  const database = useDatabase();
  let environment: NodeJS.ProcessEnv;
  let clock: SettableClock;
  beforeAll(async () => {
    environment = environmentOf(database);
    clock = new SettableClock(database.folder);
    const REGISTRY_FILE = writeRegistry(join(database.folder, 'registry.yaml'));
    await (await startServiceProcess({ ...environment, MIGRATE_ON_START: 'true', REGISTRY_FILE })).terminate();
  });

  async function start() {
    const port = await freePort();
    const ports = { ...PORTS, MANAGEMENT_PORT: String(port) };
    const process = TestProcess.start('main.js', [], { ...ports, ...environment, ...clock.environment });
    onTestFinished(() => process.signal('SIGKILL'));
    const read = (path: string) => request(`http://127.0.0.1:${port}${path}`, {});
    const offset = async () => Number(/^cas_clock_offset_seconds (.*)$/m.exec((await read('/metrics')).text)?.[1]);
    const statuses = async () => [(await read('/health/live')).status, (await read('/health/ready')).status];
    return { process, offset, statuses };
  }

  it.each([
    ['40 s ahead of', 40],
    ['40 s behind', -40],
  ])('waits at its start, alive and not ready, while it is %s it, and logs this once', async (words, seconds) => {
    clock.set(seconds);
    const { process, offset, statuses } = await start();
    await process.says(
      new RegExp(`the clock of this machine is ${words} that of the database; set the one that is wrong`),
    );
    clock.set(seconds + Math.sign(seconds));
    await expect.poll(offset).toBeCloseTo(seconds + Math.sign(seconds), 0);
    expect(await statuses()).toEqual([200, 503]);
    clock.set(0);
    await process.says(/port \d+ for callers/);
    expect(await statuses()).toEqual([200, 200]);
    expect(process.stdout.match(/the clock of this machine is/g)).toHaveLength(1);
  });

  it('serves if it is 25 s ahead, and stays ready whatever its clock becomes', async () => {
    clock.set(25);
    const { process, offset, statuses } = await start();
    await process.says(/port \d+ for callers/);
    for (const seconds of [300, -300]) {
      clock.set(seconds);
      await expect.poll(offset).toBeCloseTo(seconds, 0);
      expect(await statuses()).toEqual([200, 200]);
    }
    expect(process.stdout).not.toContain('the clock of this machine is');
  });
});
