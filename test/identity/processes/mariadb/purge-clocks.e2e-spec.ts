import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onMariadb } from '../../../../packages/conformance-kit/src/test-database.js';
import { findFaketime } from '../../../../scripts/programs.js';
import { bearerBody, registryWithSignIn, SignInSystem } from '../../../support/assertion-issuer.js';
import { bearer } from '../../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stay } from '../../../support/customer-refresh.js';
import { useDatabase } from '../../../support/databases.js';
import { expectInvalidGrant } from '../../../support/expect-error.js';
import {
  environmentOf,
  PRODUCTION,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../../../support/processes.js';
import { moveOf } from '../../../support/remember.js';
import { SettableClock } from '../../../support/settable-clock.js';
import { ACME, writeRegistry } from '../../../support/test-registry.js';
import { type HttpClient, httpClientOf } from '../../../support/test-service.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../../../support/transfers.js';

const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 86_400;

describe.skipIf(!onMariadb || !findFaketime())(
  'a purge by a process whose clock is ahead of that of the database',
  () => {
    const database = useDatabase();
    let environment: Record<string, string>;
    let signInSystem: SignInSystem;
    let pod: ServiceProcess;
    let service: HttpClient;
    beforeAll(async () => {
      signInSystem = await SignInSystem.start();
      const registry = registryWithSignIn({ [ACME]: signInSystem.settings() }, refreshingRegistry());
      const REGISTRY_FILE = writeRegistry(join(database.folder, 'registry.yaml'), registry);
      environment = { ...environmentOf(database), ...PRODUCTION };
      pod = await startServiceProcess({ ...environment, REGISTRY_FILE, MIGRATE_ON_START: 'true' });
      service = httpClientOf(pod.url);
    });
    afterAll(async () => {
      await pod?.terminate();
      await signInSystem?.issuer.stop();
    });

    async function purgeAhead(seconds: number): Promise<void> {
      const clock = new SettableClock(database.folder);
      clock.set(seconds);
      const { code, stderr } = await runCli(['purge'], { ...environment, ...clock.environment });
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    }

    it('does not make an ended access token valid again', async () => {
      const { access_token } = await newCustomer(service);
      await service.send('DELETE', TOKEN, bearer(access_token));
      await purgeAhead(26 * HOUR_SECONDS);
      expect(await infoStatus(service, access_token)).toBe(401);
    });

    it('does not let a used assertion be used again', async () => {
      const assertion = await signInSystem.assert(Date.now(), { jti: 'used before the purge' });
      const use = () => service.post(TOKEN, bearerBody(assertion));
      expect((await use()).status).toBe(200);
      await purgeAhead(6 * MINUTE_SECONDS); // the assertion expires in 5 minutes
      expectInvalidGrant(await use());
    });

    it('does not forget that a code was redeemed, so that a replay still ends its token', async () => {
      const code = await transferToken(service, (await newCustomer(service)).access_token);
      const { access_token } = (await redeem(service, code)).body;
      await purgeAhead(26 * HOUR_SECONDS); // takes longer than the 2 s of a duplicate, or its later use is no duplicate
      await expect.poll(async () => (await redeem(service, code)) && infoStatus(service, access_token)).toBe(401);
    });

    it('deletes no browser, customer, code or refresh token that is in force', async () => {
      const visited = await service.post(TOKEN, cookieBody());
      const { entity_id, access_token } = visited.body;
      const { access_token: moved } = await newCustomer(service);
      const { refresh_token } = (await stay(service, await moveOf(service, moved))).body;
      const code = await transferToken(service, access_token);
      await purgeAhead(740 * DAY_SECONDS);
      const returned = await service.post(TOKEN, cookieBody(), { cookie: cookieHeader(visited) });
      expect(returned.body.entity_id).toBe(entity_id);
      expect((await refreshCustomer(service, refresh_token)).status).toBe(200);
      expect((await redeem(service, code)).status).toBe(200);
    });
  },
);
