import { afterEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CustomerEntity } from '../../../src/customer/customer.entity.js';
import { OAuthError } from '../../../src/oauth/oauth-error.js';
import { defineExtension } from '../../../src/public/grant.js';
import { Browser } from '../../../src/session/browser.entity.js';
import { Session } from '../../../src/session/session.entity.js';
import { claimsOf } from '../../support/agent-tokens.js';
import { anonymousBody, anonymousCustomer, anonymousRegistry, askAnonymously } from '../../support/anonymous-grant.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, type Stay, stayOf } from '../../support/customer-refresh.js';
import { endSessions, endSessionsAsOperator } from '../../support/end-sessions.js';
import { expectError, expectInvalidGrant, expectInvalidRequest, expectLimited } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { forgetPurgeOfDay, issueAgentToken, purge, runCommandWithInput } from '../../support/operator-commands.js';
import { read } from '../../support/project-files.js';
import { times } from '../../support/races.js';
import { delaySelects, statementsOf } from '../../support/statements.js';
import { ACME, ACME_NATIVE, ACME_ORIGIN, ACME_SITE, PUBLIC_SITE, testRegistry } from '../../support/test-registry.js';
import { infoStatus, sessionsIn } from '../../support/transfers.js';
import { ADMIN_TOKEN, serviceOfTest, useService } from '../../support/use-service.js';

const IDLE_DAYS = 40;

let refuses = false;
const extension = defineExtension({
  beforeNewCustomer: () => {
    if (refuses) throw OAuthError.invalidRequest('captcha: missing');
  },
});
const environment = { TRUST_PROXY: '1' };
const registry = anonymousRegistry({ idle_days: IDLE_DAYS });
const service = useService({ registry, environment, ...extension });
/** Another process on the same database. */
const other = useService(() => ({ registry, environment, database: service.database }));
afterEach(() => {
  refuses = false;
});

const use = (token: string) => refreshCustomer(service, token);
const sidOf = (accessToken: string) => claimsOf(accessToken).sid as string;
const sessionOf = (customer: Stay) => sessionsIn(service).findOneBy({ id: sidOf(customer.access_token) });
const counts = () =>
  Promise.all([CustomerEntity, Browser, Session].map((entity) => service.rowsOf(entity as never).count()));
const asOperator = (method: string, path: string) => service.admin(method, `/admin/customers/${path}`);
const post = (path: string, body: object) => service.post(`/v2/customer/${path}`, body);

describe('protocol §4.17: the anonymous grant', () => {
  it('gives a new customer, a token of its own session, and a refresh token', async () => {
    const response = await askAnonymously(service);
    expect(response.status).toBe(200);
    expect(response.body).toEqual({
      access_token: expect.any(String),
      client_id: ACME_SITE,
      entity_id: expect.any(String),
      expires_in: 28_800,
      organization_id: ACME,
      refresh_token: expect.stringMatching(/^dev:[\w-]{22}\.[\w-]{43}$/),
      token_type: 'Bearer',
    });
    expect(response.cookies).toEqual([]);
    const claims = claimsOf(response.body.access_token);
    expect(claims).toMatchObject({ sub: response.body.entity_id, gty: 'anonymous', ep: 0 });
    expect(claims).not.toHaveProperty('user_verified');
    const next = await use(response.body.refresh_token);
    expect(next.body).toMatchObject({ entity_id: response.body.entity_id });
    expect(sidOf(next.body.access_token)).toBe(claims.sid);
    expect((await askAnonymously(service)).body.entity_id).not.toBe(response.body.entity_id);
  });

  it('gives the customer of a group on its path', async () => {
    const path = `/v2/customer/${ACME}/sales/token`;
    const { body } = await service.post(path, anonymousBody(), { origin: ACME_ORIGIN });
    expect(claimsOf(body.access_token).group_id).toBe('sales');
    expect(claimsOf((await use(body.refresh_token)).body.access_token).group_id).toBe('sales');
  });

  it('costs two INSERTs, and its refresh one SELECT and one UPDATE', async () => {
    const sent = await statementsOf(service, () => askAnonymously(service));
    expect(sent).toEqual(['INSERT', 'INSERT']);
    const { refresh_token } = await anonymousCustomer(service);
    expect(await statementsOf(service, () => use(refresh_token))).toEqual(['SELECT', 'UPDATE']);
  });

  it('is for clients that list it and the grant refresh_token', async () => {
    const unauthorized = { status: 400, error: 'unauthorized_client', hint: /^grant_type: / };
    const before = await counts();
    expectError(await service.post(TOKEN, anonymousBody({ client_id: PUBLIC_SITE })), unauthorized);
    expect(await counts()).toEqual(before);
    const noRefresh = await serviceOfTest({ registry: anonymousRegistry({}, { grant_types: ['anonymous'] }) });
    expectError(await askAnonymously(noRefresh), unauthorized);
    expect(await identitiesOf(noRefresh).count()).toBe(0);
  });

  it('needs an Origin of the client from a client of the type web only', async () => {
    const before = await counts();
    expectInvalidRequest(await service.post(TOKEN, anonymousBody()), /^Origin: missing/);
    const foreign = { origin: 'https://evil.example' };
    expectInvalidRequest(await service.post(TOKEN, anonymousBody(), foreign), /^Origin/);
    expect(await counts()).toEqual(before);
    expect((await service.post(TOKEN, anonymousBody({ client_id: ACME_NATIVE }))).status).toBe(200);
  });

  it('creates nothing if the extension refuses the customer', async () => {
    const before = await counts();
    refuses = true;
    expectInvalidRequest(await askAnonymously(service), 'captcha: missing');
    expect(await counts()).toEqual(before);
    expect(service.audit.filter(({ event }) => event === 'identity.created')).toEqual([]);
  });

  it('counts against the limit of new customers, and its refresh does not', async () => {
    const limits = { ...environment, RATE_LIMIT: 'identities=2/3600' };
    const limited = await serviceOfTest({ registry, environment: limits });
    beginWindow(limited);
    const { refresh_token } = await anonymousCustomer(limited);
    expect((await askAnonymously(limited)).status).toBe(200);
    expectLimited(await askAnonymously(limited), 3_600);
    expect((await refreshCustomer(limited, refresh_token)).status).toBe(200);
    expect((await askAnonymously(limited, {}, { 'x-forwarded-for': '203.0.113.9' })).status).toBe(200);
  });

  it('is an audit event of the new customer and of its refresh token', async () => {
    const { entity_id } = await anonymousCustomer(service);
    const events = service.audit.map(({ event, subject }) => [event, subject?.id]);
    for (const event of ['refresh_token.issued', 'identity.created', 'token.issued'])
      expect(events).toContainEqual([event, entity_id]);
  });
});

describe('the session of an anonymous customer', () => {
  it('lives idle_days from its last use, by the setting of the day of this use', async () => {
    let { refresh_token } = await anonymousCustomer(service);
    for (const days of [IDLE_DAYS, IDLE_DAYS]) {
      service.passDays(days);
      refresh_token = (await use(refresh_token)).body.refresh_token;
    }
    const change = async (idle_days: number | null) =>
      expect((await service.admin('PATCH', `/admin/organizations/${ACME}`, { idle_days })).status).toBe(200);
    try {
      await change(100);
      refresh_token = (await use(refresh_token)).body.refresh_token;
      service.passDays(100);
      refresh_token = (await use(refresh_token)).body.refresh_token;
      await change(3);
      service.passDays(5);
      const live = await use(refresh_token);
      expect(live.status, 'a lower setting counts at the next purge').toBe(200);
      await change(100);
      refresh_token = (await use(live.body.refresh_token)).body.refresh_token;
      service.passDays(5);
      await change(3);
      await forgetPurgeOfDay(service);
      await purge(service);
      expectInvalidGrant(await use(refresh_token));
    } finally {
      await change(IDLE_DAYS);
    }
  });

  it('lives on from a retry, too', async () => {
    const { refresh_token } = await anonymousCustomer(service);
    const lost = (await use(refresh_token)).body.refresh_token;
    service.passDays(IDLE_DAYS);
    expect((await use(refresh_token)).body.refresh_token).toBe(lost);
    service.passDays(IDLE_DAYS);
    expect((await use(lost)).status).toBe(200);
    service.passDays(IDLE_DAYS + 1);
    expectInvalidGrant(await use(lost));
  });

  it('is purged when it is idle, and the customer after it', async () => {
    const customer = await anonymousCustomer(service);
    const used = await anonymousCustomer(service);
    const exists = async ({ entity_id }: Stay) => identitiesOf(service).existsBy({ entityId: entity_id });
    const purgeAfter = async (days: number) => {
      service.passDays(days);
      await forgetPurgeOfDay(service);
      await purge(service);
    };
    await purgeAfter(IDLE_DAYS);
    const next = (await use(used.refresh_token)).body.refresh_token;
    expect([await sessionOf(customer), await exists(customer)]).toEqual([expect.anything(), true]);
    await purgeAfter(3);
    expect([await sessionOf(customer), await exists(customer)]).toEqual([null, false]);
    expect(await exists(used)).toBe(true);
    expect((await use(next)).status).toBe(200);
  });

  it('stays at end_sessions, which ends its access tokens and the devices by transfer', async () => {
    const { entity_id, access_token, refresh_token } = await anonymousCustomer(service);
    const moved = await stayOf(service, access_token);
    expect((await endSessions(service, access_token)).status).toBe(200);
    for (const token of [access_token, moved.access_token]) expect(await infoStatus(service, token)).toBe(401);
    expectInvalidGrant(await use(moved.refresh_token));
    const next = await use(refresh_token);
    expect(next.body.entity_id).toBe(entity_id);
    expect(await infoStatus(service, next.body.access_token)).toBe(200);
  });

  it('ends at end_sessions with browsers, which a stolen access token alone cannot send', async () => {
    const { entity_id, access_token, refresh_token } = await anonymousCustomer(service);
    expectInvalidRequest(await endSessions(service, access_token, { browsers: true }), /^browsers: /);
    const next = (await use(refresh_token)).body;
    expect(await infoStatus(service, next.access_token)).toBe(200);
    expect((await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id, { browsers: true })).status).toBe(200);
    expect(await infoStatus(service, next.access_token)).toBe(401);
    expectInvalidGrant(await use(next.refresh_token));
  });

  it('is no device of the bounds', async () => {
    const { access_token } = await anonymousCustomer(service);
    for (let device = 0; device < 20; device++) await stayOf(service, access_token);
    expect(await sessionsIn(service).countBy({ customerId: `${claimsOf(access_token).sub}`, kind: 'refresh' })).toBe(
      20,
    );
  });

  it('ends by a revocation of its client with all that was made in it, and by that of another client not', async () => {
    const { access_token, refresh_token } = await anonymousCustomer(service);
    const moved = await stayOf(service, access_token);
    expect((await post('revoke', { token: refresh_token, client_id: ACME_NATIVE })).status).toBe(200);
    expect(await infoStatus(service, access_token)).toBe(200);
    expect((await post('revoke', { token: refresh_token, client_id: ACME_SITE })).status).toBe(200);
    for (const token of [access_token, moved.access_token]) expect(await infoStatus(service, token)).toBe(401);
    for (const token of [refresh_token, moved.refresh_token]) expectInvalidGrant(await use(token));
  });

  it('stays when one of its access tokens is revoked', async () => {
    const { entity_id, access_token, refresh_token } = await anonymousCustomer(service);
    expect((await post('revoke', { token: access_token, client_id: ACME_SITE })).status).toBe(200);
    expect(await infoStatus(service, access_token)).toBe(401);
    expect((await use(refresh_token)).body.entity_id).toBe(entity_id);
  });

  it('ends by a reuse of a refresh token, and a retry gets the same successor', async () => {
    const { access_token, refresh_token } = await anonymousCustomer(service);
    const [first, retry] = [await use(refresh_token), await use(refresh_token)];
    expect(retry.body.refresh_token).toBe(first.body.refresh_token);
    await use(first.body.refresh_token);
    expectInvalidGrant(await use(refresh_token));
    expect(await infoStatus(service, access_token)).toBe(401);
  });

  it('gives one successor to 12 uses at once on two processes', async () => {
    let { refresh_token } = await anonymousCustomer(service);
    for (const each of [service, other]) delaySelects(each);
    const responses = await times(12, (index) => refreshCustomer(index % 2 ? service : other, refresh_token));
    const successors = new Set(responses.map(({ body }) => body.refresh_token));
    expect(successors.size).toBe(1);
    [refresh_token] = [...successors] as [string];
    expect((await use(refresh_token)).status).toBe(200);
  });

  it('is refused with its client or organization suspended, and goes on after the suspension', async () => {
    const alone = await serviceOfTest({ registry });
    let { refresh_token } = await anonymousCustomer(alone);
    for (const path of [`clients/${ACME_SITE}`, `organizations/${ACME}`]) {
      const suspend = (suspended: boolean) => alone.admin('PATCH', `/admin/${path}`, { suspended });
      await suspend(true);
      expect((await refreshCustomer(alone, refresh_token)).status).toBe(400);
      expect((await askAnonymously(alone)).status).toBe(400);
      await suspend(false);
      alone.clock.advance({ seconds: 7 });
      const next = await refreshCustomer(alone, refresh_token);
      expect(next.status).toBe(200);
      ({ refresh_token } = next.body);
    }
  });

  it('ends with the client when the client is deleted, and is not inherited by a client of the same id', async () => {
    const alone = await serviceOfTest({ registry: anonymousRegistry() });
    const { entity_id, access_token, refresh_token } = await anonymousCustomer(alone);
    const path = `/admin/clients/${ACME_SITE}`;
    expect((await alone.admin('DELETE', path)).status).toBe(200);
    expect(await infoStatus(alone, access_token)).toBe(401);
    expect((await refreshCustomer(alone, refresh_token)).status).toBe(400);
    alone.passDays(2);
    for (let turn = 0; turn < 2; turn++) {
      await forgetPurgeOfDay(alone);
      await purge(alone);
    }
    expect(await sessionsIn(alone).countBy({ customerId: entity_id })).toBe(0);
    const entry = registry.clients.find((each) => 'client_id' in each && each.client_id === ACME_SITE);
    expect((await alone.admin('POST', '/admin/clients', entry)).status).toBe(201);
    expectInvalidGrant(await refreshCustomer(alone, refresh_token));
  });

  it('is listed for the operator as a refresh token, and can be ended alone', async () => {
    const { entity_id, access_token, refresh_token } = await anonymousCustomer(service);
    const sid = sidOf(access_token);
    const { body } = await asOperator('GET', entity_id);
    expect(body).toMatchObject({ browser: true, browsers: [], refresh_tokens: [{ id: sid, client_id: ACME_SITE }] });
    expect((await asOperator('DELETE', `${entity_id}/refresh-tokens/${sid}`)).status).toBe(200);
    expect(await infoStatus(service, access_token)).toBe(401);
    expectInvalidGrant(await use(refresh_token));
  });

  it('is explained by its refresh token', async () => {
    const { entity_id, refresh_token } = await anonymousCustomer(service);
    const { output } = await runCommandWithInput(service, refresh_token, 'token', 'explain');
    expect(output).toMatch(entity_id);
  });

  it('is in the export without its hashes, and is erased with the customer', async () => {
    const { entity_id, access_token, refresh_token } = await anonymousCustomer(service);
    const { body } = await asOperator('GET', `${entity_id}/export`);
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const session = { id: sidOf(access_token), kind: 'own', client_id: ACME_SITE };
    expect(body.tables.session).toMatchObject([{ ...session, created_at: time, expires_at: time, redeemed_at: null }]);
    expect(body.tables.customer).toMatchObject([{ created_at: time }]);
    expect(body.tables.session[0]).not.toHaveProperty('refresh_id_hash');
    await service.erase(entity_id);
    expect(await infoStatus(service, access_token)).toBe(401);
    expectInvalidGrant(await use(refresh_token));
    expect(await sessionsIn(service).countBy({ customerId: entity_id })).toBe(0);
  });

  it('is reached by an agent as that of any customer', async () => {
    const { entity_id } = await anonymousCustomer(service);
    const body = { grant_type: 'agent_token', response_type: 'token', client_id: ACME_SITE, entity_id };
    expect((await service.post(TOKEN, body, bearer(await issueAgentToken(service)))).status).toBe(200);
  });
});

describe('protocol §4.13: forgetting a refresh token', () => {
  const forget = (refresh_token: string, more: object = {}) =>
    post('forget', { client_id: ACME_SITE, organization_id: ACME, refresh_token, ...more });

  it('ends it for good, and leaves access tokens and the devices that were made with it', async () => {
    const { entity_id, access_token, refresh_token } = await anonymousCustomer(service);
    const moved = await stayOf(service, access_token);
    const next = (await use(refresh_token)).body.refresh_token;
    delaySelects(service);
    for (const { body } of await Promise.all([forget(refresh_token), forget(refresh_token)])) expect(body).toEqual({});
    for (const token of [next, refresh_token]) expectInvalidGrant(await use(token));
    for (const token of [access_token, moved.access_token]) expect(await infoStatus(service, token)).toBe(200);
    expect((await use(moved.refresh_token)).body.entity_id).toBe(entity_id);
    expect((await asOperator('GET', entity_id)).body.refresh_tokens).toHaveLength(1);
    expect((await forget(refresh_token)).status).toBe(200);
    const events = service.audit.filter(({ event: name }) => name === 'token.revoked');
    expect(events).toMatchObject([{ actor: { kind: 'client', id: ACME_SITE }, subject: { id: sidOf(access_token) } }]);
  });

  it('of a moved device makes room for another one', async () => {
    const { access_token } = await anonymousCustomer(service);
    const [first] = await Promise.all([stayOf(service, access_token)]);
    for (let device = 1; device < 20; device++) await stayOf(service, access_token);
    await forget(first?.refresh_token as string);
    await stayOf(service, access_token);
  });

  it('does nothing for another client, another group or a token that is unknown', async () => {
    const { refresh_token } = await anonymousCustomer(service);
    const unknown = `dev:${'x'.repeat(22)}.${'x'.repeat(43)}`;
    for (const [token, more] of [
      [refresh_token, { client_id: ACME_NATIVE }],
      [refresh_token, { group_id: 'sales' }],
      [unknown, {}],
      ['x', {}],
    ] as const)
      expect((await forget(token, more)).status).toBe(200);
    expect((await use(refresh_token)).status).toBe(200);
  });
});

it('without-cookies.yaml of the examples gives a page a customer that stays by a refresh token', async () => {
  const { clients } = parse(read('examples/integrating/browser/without-cookies.yaml'));
  const page = await serviceOfTest({ registry: { ...testRegistry(), clients } });
  const [{ client_id, redirect_uris }] = clients;
  const origin = { origin: new URL(redirect_uris[0]).origin };
  const { body } = await askAnonymously(page, { client_id }, origin);
  const refresh = { grant_type: 'refresh_token', client_id, refresh_token: body.refresh_token };
  expect((await page.post(TOKEN, refresh, origin)).body).toMatchObject({ entity_id: body.entity_id });
});
