import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onMariadb } from '../../../../packages/conformance-kit/src/test-database.js';
import { findFaketime } from '../../../../scripts/programs.js';
import { useDatabase } from '../../../support/databases.js';
import { environmentOf, PRODUCTION, type ServiceProcess, startServiceProcess } from '../../../support/processes.js';
import { endNewToken, FEED_SERVERS, FeedConsumer } from '../../../support/revocation-feed.js';
import { SettableClock } from '../../../support/settable-clock.js';
import { testRegistry, writeRegistry } from '../../../support/test-registry.js';
import { httpClientOf } from '../../../support/test-service.js';

const DAY_SECONDS = 86_400;

describe.skipIf(!onMariadb || !findFaketime())('the revocation feed of a process whose clock is wrong', () => {
  const database = useDatabase();
  const pods: ServiceProcess[] = [];
  let right: ServiceProcess;
  let wrong: ServiceProcess;
  let clock: SettableClock;
  beforeAll(async () => {
    clock = new SettableClock(database.folder);
    const REGISTRY_FILE = writeRegistry(join(database.folder, 'registry.yaml'), {
      ...testRegistry(),
      resource_servers: FEED_SERVERS,
    });
    const environment = { ...environmentOf(database), ...PRODUCTION, REGISTRY_FILE, MIGRATE_ON_START: 'true' };
    wrong = await startServiceProcess({ ...environment, ...clock.environment });
    pods.push(wrong);
    right = await startServiceProcess(environment);
    pods.push(right);
  });
  afterAll(async () => {
    clock.set(0);
    for (const pod of pods) await pod.terminate();
  });

  it.each([
    ['ahead', 3 * DAY_SECONDS],
    ['behind', -3 * DAY_SECONDS],
  ])('has the tokens that have ended, if the clock is three days %s', async (_, seconds) => {
    clock.set(seconds);
    const value = await endNewToken(httpClientOf(right.url));
    for (const pod of [wrong, right]) {
      const entry = await new FeedConsumer([pod]).find({ value });
      const remainingMs = Date.parse(entry.expires_at) - Date.now();
      expect(remainingMs).toBeGreaterThan(0);
      expect(remainingMs).toBeLessThanOrEqual((DAY_SECONDS + 120) * 1_000);
    }
  });
});
