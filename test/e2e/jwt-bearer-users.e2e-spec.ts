import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { OrganizationUser } from '../../src/grants/jwt-bearer/organization-user.entity.js';
import { Database } from '../../src/platform/database/database.js';
import { sha256 } from '../../src/platform/secret.js';
import { RACE_SIZE } from '../../src/testing/race.js';
import { onMariadb } from '../../src/testing/test-database.js';
import { JWT_BEARER, registryWithSignIn, SIGN_IN, signIn } from '../support/assertion-issuer.js';
import { TestBrowser } from '../support/cookie-grant.js';
import { identitiesOf } from '../support/identities.js';
import { type LossyProxy, startLossyProxy } from '../support/lossy-proxy.js';
import { times } from '../support/races.js';
import {
  acme,
  assert,
  database,
  dieAt,
  erase,
  expectRefused,
  FROM_PAGE,
  LINK,
  newUser,
  other,
  rowsOf,
  service,
  signInAs,
  signInRival,
  startSignInServices,
} from '../support/sign-in-services.js';
import { sqlOf } from '../support/statements.js';
import { ACME, RIVAL } from '../support/test-registry.js';
import { startTestService, type TestResponse, type TestService } from '../support/test-service.js';
import { infoStatus } from '../support/transfers.js';

startSignInServices();

describe('a user', () => {
  it('is known by every byte of its id', async () => {
    const id = randomUUID();
    const ids = [
      'user',
      'USER',
      'User',
      'user ',
      ' user',
      'us\u00e9r',
      'us\u0065\u0301r',
      'user\u00a0',
      'us\u200ber',
      'usеr',
      'üser',
    ];
    const customers = new Set<string>();
    for (const each of ids) customers.add((await signInAs(`${each}${id}`)).body.entity_id);
    for (const each of ids) customers.add((await signInAs(`${id}${each}`)).body.entity_id);
    expect(customers.size).toBe(2 * ids.length);
    expect([...customers]).toContain((await signInAs(`user ${id}`)).body.entity_id);
  });

  it('of one organization is nobody to another that calls its user the same', async () => {
    const sub = newUser();
    const [ours, theirs] = [await signInAs(sub), await signInRival({ sub })];
    expect(theirs.body.organization_id).toBe(RIVAL);
    expect(theirs.body.entity_id).not.toBe(ours.body.entity_id);
  });

  it(`that signs in for the first time ${RACE_SIZE} ways at once, at two processes, is one customer`, async () => {
    for (let round = 0; round < 3; round++) {
      const sub = newUser();
      const before = await identitiesOf(service).count();
      const answers = await times(RACE_SIZE, (index) => signInAs(sub, {}, {}, index % 2 ? service : other));
      expect(answers.map(({ status }) => status)).toEqual(Array(RACE_SIZE).fill(200));
      expect(new Set(answers.map(({ body }) => body.entity_id)).size).toBe(1);
      expect(await identitiesOf(service).count()).toBe(before + 1);
    }
  });

  it('that is known costs one INSERT and one SELECT', async () => {
    const sub = newUser();
    await signInAs(sub);
    const sent = service.application.get(Database);
    const before = sent.statements;
    await signInAs(sub);
    expect(sent.statements - before).toBe(2);
  });

  it('is told to the audit once as a new customer, and with each token', async () => {
    const sub = newUser();
    service.audit.length = 0;
    const { body } = await signInAs(sub);
    await signInAs(sub);
    const told = service.audit.map(({ event, grant, clientId, organizationId, subject }) => [
      event,
      grant,
      clientId,
      organizationId,
      subject?.id,
    ]);
    const of = [JWT_BEARER, SIGN_IN, ACME, body.entity_id];
    expect(told).toEqual([
      ['identity.created', ...of],
      ['token.issued', ...of],
      ['token.issued', ...of],
    ]);
  });

  it.each<[string, RegExp, 'before' | 'after']>([
    ['before its customer is made', /INTO customer_identity/, 'before'],
    ['after its customer is made', /INTO customer_identity/, 'after'],
    ['before it is settled', /SET settled_at/, 'before'],
    ['before it has a customer', /INTO organization_user/, 'before'],
  ])('whose first sign-in dies %s is one customer at the next', async (_, pattern, moment) => {
    const sub = newUser();
    const before = await identitiesOf(service).count();
    dieAt(pattern, moment);
    expect((await signInAs(sub)).status).toBe(500);
    vi.restoreAllMocks();
    const [one, two] = [await signInAs(sub), await signInAs(sub, {}, {}, other)];
    expect(one.status).toBe(200);
    expect(two.body.entity_id).toBe(one.body.entity_id);
    expect(await identitiesOf(service).count()).toBe(before + 1);
    expect(await infoStatus(service, one.body.access_token)).toBe(200);
  });
});

describe('an erased customer', () => {
  it('takes with it what was known of the user, who is a new customer from then on', async () => {
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

  it('is not erased by halves: while what is known of the user cannot go, the customer stays', async () => {
    const sub = newUser();
    const { entity_id } = (await signInAs(sub)).body;
    dieAt(/DELETE FROM organization_user/, 'before');
    expect((await erase(entity_id)).status).toBe(500);
    vi.restoreAllMocks();
    expect((await erase(entity_id)).status).toBe(200);
    expect(await rowsOf(OrganizationUser).countBy({ entityId: entity_id })).toBe(0);
  });

  it('is not left to a user to whom it was given while it was erased', async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    const sub = newUser();
    const sent = service.application.get(Database);
    const execute = sent.execute.bind(sent);
    let given: TestResponse | undefined;
    vi.spyOn(sent, 'execute').mockImplementation(async (statement, parameters) => {
      if (/SET organization_id = NULL/.test(sqlOf(sent, statement)))
        given = await signInAs(sub, LINK, { ...FROM_PAGE, cookie: browser.cookie }, other);
      return execute(statement, parameters);
    });
    expect((await erase(entity_id)).status).toBe(200);
    vi.restoreAllMocks();
    expect(given?.body.entity_id).toBe(entity_id);
    expect(await infoStatus(service, given?.body.access_token)).toBe(401);
    expect(await rowsOf(OrganizationUser).countBy({ entityId: entity_id })).toBe(0);
    const after = (await signInAs(sub)).body;
    expect(after.entity_id).not.toBe(entity_id);
    expect(await infoStatus(service, after.access_token)).toBe(200);
  });

  it('leaves nothing when the user signs in at that very moment', async () => {
    for (let round = 0; round < 10; round++) {
      const sub = newUser();
      const { entity_id } = (await signInAs(sub)).body;
      const [erased, ...answers] = await Promise.all([
        erase(entity_id),
        ...Array.from({ length: 8 }, (_, index) => signInAs(sub, {}, {}, index % 2 ? service : other)),
      ]);
      expect(erased.status).toBe(200);
      for (const { status } of answers) expect(status).toBe(200);
      const after = (await signInAs(sub)).body;
      expect(after.entity_id).not.toBe(entity_id);
      expect(await infoStatus(service, after.access_token)).toBe(200);
      expect(await rowsOf(OrganizationUser).countBy({ entityId: entity_id })).toBe(0);
      expect(new Set(answers.map(({ body }) => body.entity_id).filter((id) => id !== entity_id)).size).toBeLessThan(2);
    }
  });
});

describe.runIf(onMariadb)('an answer that is lost on its way from the database', () => {
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

  // the statements that name a text, in their order
  it.each<[string, (sub: string, jti: string) => string, number]>([
    ['to the use of the assertion', (_, jti) => hashOf(acme.issuer.issuer, jti), 1],
    ['to the row of the user', (sub) => hashOf(ACME, sub), 2],
    ['to the making of the customer', () => ACME, 4],
    ['to its being settled', (sub) => hashOf(ACME, sub), 3],
  ])('%s refuses nobody, and makes nobody twice', async (_, textOf, which) => {
    const [sub, jti] = [newUser(), randomUUID()];
    const [before, lost] = [await identitiesOf(service).count(), proxy.lost];
    proxy.loseAnswers(textOf(sub, jti), [which]);
    const assertion = await assert({ sub, jti });
    const answer = await signIn(remote, assertion);
    expect({ status: answer.status, lost: proxy.lost - lost }).toEqual({ status: 200, lost: 1 });
    expect((await signInAs(sub)).body.entity_id).toBe(answer.body.entity_id);
    expect(await identitiesOf(service).count()).toBe(before + 1);
    await expectRefused(() => signIn(remote, assertion));
  });

  it.each([false, true])('to a link is told once, of a user who has a customer: %s', async (isKnown) => {
    const sub = newUser();
    if (isKnown) await signInAs(sub);
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    const lost = proxy.lost;
    remote.audit.length = 0;
    // it is recognised, looked for among users' customers, and linked
    proxy.loseAnswers(entity_id, [3]);
    const headers = { ...FROM_PAGE, cookie: browser.cookie as string };
    const answer = await signInAs(sub, LINK, headers, remote);
    expect({ status: answer.status, lost: proxy.lost - lost }).toEqual({ status: 200, lost: 1 });
    expect(remote.audit.filter(({ event }) => event === 'identity.linked')).toHaveLength(1);
  });
});
