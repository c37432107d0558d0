import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { onMariadb } from '../../../../packages/conformance-kit/src/test-database.js';
import { type MariadbServer, startMariadb } from '../../../../scripts/mariadb.js';
import { findFaketime } from '../../../../scripts/programs.js';
import { expectInvalidGrant } from '../../../support/expect-error.js';
import { environmentOf, PRODUCTION, type ServiceProcess, startServiceProcess } from '../../../support/processes.js';
import { temporaryFolder } from '../../../support/project-files.js';
import { SettableClock } from '../../../support/settable-clock.js';
import { writeRegistry } from '../../../support/test-registry.js';
import { type HttpClient, httpClientOf } from '../../../support/test-service.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../../../support/transfers.js';

const HOUR_SECONDS = 3_600;

/** SQLite has the clock of the process. MariaDB has a clock of its own. */
describe.skipIf(!findFaketime())('protocol §3.7: a second use of a code from the same network', () => {
  const folder = mkdtempSync(join(temporaryFolder('database-clock'), 'data-'));
  const clock = new SettableClock(folder);
  let server: MariadbServer | undefined;
  let pod: ServiceProcess;
  let service: HttpClient;
  beforeAll(async () => {
    server = onMariadb ? await startMariadb({ environment: clock.environment }) : undefined;
    const url = (await server?.createDatabase('clocks')) ?? `sqlite:${join(folder, 'test.sqlite')}`;
    const environment = {
      ...environmentOf({ url, folder, remove: async () => undefined }),
      ...PRODUCTION,
      REGISTRY_FILE: writeRegistry(join(folder, 'registry.yaml')),
      MIGRATE_ON_START: 'true',
      ...(server ? {} : clock.environment),
    };
    pod = await startServiceProcess(environment);
    service = httpClientOf(pod.url);
  });
  afterAll(async () => {
    await pod?.terminate();
    await server?.stop();
  });
  beforeEach(() => clock.set(0));

  it.each([
    ['was set back by a day: the token of the first use ends', -24 * HOUR_SECONDS],
    ['was set back by an hour: the token of the first use ends', -HOUR_SECONDS],
    ['was set forward by an hour: the token of the first use ends', HOUR_SECONDS],
  ])('is a replay after the clock of the database %s', async (_, seconds) => {
    const code = await transferToken(service, (await newCustomer(service)).access_token);
    const { access_token } = (await redeem(service, code)).body;
    clock.set(seconds);
    expectInvalidGrant(await redeem(service, code));
    clock.set(0);
    expect(await infoStatus(service, access_token)).toBe(401);
  });
});
