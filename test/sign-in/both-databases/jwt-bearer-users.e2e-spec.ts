import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { OrganizationUser } from '../../../src/organization-user/organization-user.entity.js';
import { Database } from '../../../src/platform/database/database.js';
import { sha256 } from '../../../src/platform/secret.js';
import { JWT_BEARER, registryWithSignIn, SIGN_IN, signIn } from '../../support/assertion-issuer.js';
import { TestBrowser } from '../../support/cookie-grant.js';
import { loseEachResponse } from '../../support/dying-transactions.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { type LossyProxy, startLossyProxy } from '../../support/lossy-proxy.js';
import {
  ADMIN_TOKEN,
  acme,
  assert,
  database,
  erase,
  FROM_PAGE,
  LINK,
  newUser,
  other,
  REMEMBER,
  rowsOf,
  service,
  signInAs,
  signInRival,
  startSignInServices,
} from '../../support/sign-in-services.js';
import { statementsOf } from '../../support/statements.js';
import { ACME, RIVAL } from '../../support/test-registry.js';
import { startTestService, type TestResponse, type TestService } from '../../support/test-service.js';
import { infoStatus } from '../../support/transfers.js';

startSignInServices();

describe('a user of the JWT bearer grant', () => {
  it('is another customer in another organization, even with the same sub', async () => {
    const sub = newUser();
    const [inAcme, inRival] = [await signInAs(sub), await signInRival({ sub })];
    expect(inRival.body.organization_id).toBe(RIVAL);
    expect(inRival.body.entity_id).not.toBe(inAcme.body.entity_id);
  });

  it('costs one INSERT and one SELECT when it is already known', async () => {
    const sub = newUser();
    await signInAs(sub);
    expect(await statementsOf(service, () => signInAs(sub))).toEqual(['INSERT', 'SELECT']);
  });

  it('causes one identity.created event, and one token.issued event for each token', async () => {
    const sub = newUser();
    service.audit.length = 0;
    const { body } = await signInAs(sub);
    await signInAs(sub);
    const events = service.audit.map(({ event, grant, clientId, organizationId, subject }) => [
      event,
      grant,
      clientId,
      organizationId,
      subject?.id,
    ]);
    const fields = [JWT_BEARER, SIGN_IN, ACME, body.entity_id];
    expect(events).toEqual([
      ['identity.created', ...fields],
      ['token.issued', ...fields],
      ['token.issued', ...fields],
    ]);
  });
});

describe('an assertion that was made before', () => {
  it('signs in to the same customer after the end of all sessions, and to a new customer after an erasure', async () => {
    const sub = newUser();
    const { entity_id, access_token } = (await signInAs(sub)).body;
    const [first, second] = [await assert({ sub, jti: randomUUID() }), await assert({ sub, jti: randomUUID() })];
    const ended = await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id, { browsers: true });
    expect(ended.status).toBe(200);
    expect(await infoStatus(service, access_token)).toBe(401);
    const { body } = await signIn(service, first, REMEMBER, FROM_PAGE);
    expect(body.entity_id).toBe(entity_id);
    expect(await infoStatus(service, body.access_token)).toBe(200);

    expect((await erase(entity_id)).status).toBe(200);
    const after = (await signIn(service, second, REMEMBER, FROM_PAGE)).body;
    expect(after.entity_id).not.toBe(entity_id);
    expect(await infoStatus(service, after.access_token)).toBe(200);
  });
});

describe('the erasure of a user’s customer', () => {
  it('deletes the user’s record, and the next sign-in creates a new customer', async () => {
    const sub = newUser();
    const { entity_id, access_token } = (await signInAs(sub)).body;
    expect((await erase(entity_id)).status).toBe(200);
    expect(await rowsOf(OrganizationUser).countBy({ customerId: entity_id })).toBe(0);
    expect(await infoStatus(service, access_token)).toBe(401);
    const again = (await signInAs(sub)).body;
    expect(again.entity_id).not.toBe(entity_id);
    expect(await infoStatus(service, again.access_token)).toBe(200);
    expect((await signInAs(sub)).body.entity_id).toBe(again.entity_id);
  });

  it('also takes the customer from a user who was linked during the erasure', async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    const sub = newUser();
    const sqlDatabase = service.application.get(Database);
    const transaction = sqlDatabase.transaction.bind(sqlDatabase);
    let linked: TestResponse | undefined;
    vi.spyOn(sqlDatabase, 'transaction').mockImplementationOnce(async (work) => {
      linked = await signInAs(sub, LINK, { ...FROM_PAGE, cookie: browser.cookie }, other);
      return transaction(work) as never;
    });
    expect((await erase(entity_id)).status).toBe(200);
    vi.restoreAllMocks();
    expect(linked?.body.entity_id).toBe(entity_id);
    expect(await infoStatus(service, linked?.body.access_token)).toBe(401);
    expect(await rowsOf(OrganizationUser).countBy({ entityId: entity_id })).toBe(0);
    const after = (await signInAs(sub)).body;
    expect(after.entity_id).not.toBe(entity_id);
    expect(await infoStatus(service, after.access_token)).toBe(200);
  });
});

describe.runIf(onMariadb)('a database response that is lost during a sign-in', () => {
  let proxy: LossyProxy;
  let remote: TestService;
  beforeAll(async () => {
    proxy = await startLossyProxy(database.url);
    const far = { ...database, url: proxy.through(database.url) };
    remote = await startTestService({ registry: registryWithSignIn({ [ACME]: acme.settings() }), database: far });
  });
  afterAll(async () => {
    await remote?.stop();
    await proxy?.close();
  });
  const hashOf = (...texts: string[]) => sha256(JSON.stringify(texts));

  it('to the statement that records the assertion causes no error', async () => {
    const [sub, jti] = [newUser(), randomUUID()];
    const lostBefore = proxy.lost;
    proxy.dropResponses(hashOf(ACME, acme.issuer.issuer, jti), [1]);
    const response = await signIn(remote, await assert({ sub, jti }));
    expect({ status: response.status, lost: proxy.lost - lostBefore }).toEqual({ status: 200, lost: 1 });
  });

  it.each([
    [false, 12],
    [true, 9],
  ])(
    'to whichever statement of the linking causes one audit event, for a user who has a customer: %s',
    async (isKnown, statementCount) => {
      const attempt = async () => {
        const sub = newUser();
        if (isKnown) await signInAs(sub);
        const browser = new TestBrowser(service);
        await browser.visit();
        remote.audit.length = 0;
        const headers = { ...FROM_PAGE, cookie: browser.cookie as string };
        expect((await signInAs(sub, LINK, headers, remote)).status).toBe(200);
        expect(remote.audit.filter(({ event }) => event === 'identity.linked')).toHaveLength(1);
      };
      const last = await loseEachResponse(remote, proxy, attempt);
      expect(last).toBe(statementCount);
    },
  );
});
