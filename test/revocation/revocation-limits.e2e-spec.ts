import { beforeEach, describe, expect, it } from 'vitest';
import { agentTokenBody, claimsOf, exchangeCode, refresh } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, type Stay, stay, stayOf } from '../support/customer-refresh.js';
import { endSessions, endSessionsAsOperator } from '../support/end-sessions.js';
import { expectInvalidGrant, expectLimited } from '../support/expect-error.js';
import { beginWindow } from '../support/limit-windows.js';
import { manage } from '../support/management-api.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { moveOf, remember, transferredSessionsOf } from '../support/remember.js';
import { FEED_SERVERS, FeedConsumer, POLL_PAUSE_MS } from '../support/revocation-feed.js';
import { ACME_BACKEND, ACME_SITE, BACKEND_SECRET } from '../support/test-registry.js';
import type { TestService } from '../support/test-service.js';
import { shortenPauses } from '../support/timers.js';
import {
  agentTokenPair,
  ageRedemption,
  authorizationCode,
  infoStatus,
  newCustomer,
  redeem,
  transferToken,
} from '../support/transfers.js';
import { ADMIN_TOKEN, serviceOfTest, type UsedService } from '../support/use-service.js';

beforeEach(() => shortenPauses(POLL_PAUSE_MS));

const HOME = { 'x-forwarded-for': '203.0.113.7' };
const ELSEWHERE = { 'x-forwarded-for': '198.51.100.1' };

/** Two grants of the clients of the registry: `remember` with both values. */
function registry() {
  const all = refreshingRegistry({ grants: { identity_token: { remember: ['refresh_token', 'browser'] } } });
  return { ...all, resource_servers: FEED_SERVERS };
}

/** @param RATE_LIMIT the default limits if empty */
async function limited(RATE_LIMIT: string, environment: Record<string, string> = {}): Promise<UsedService> {
  const given = { RATE_LIMIT, TRUST_PROXY: '1', ...environment };
  const service = await serviceOfTest({ registry: registry(), environment: given });
  beginWindow(service);
  return service;
}

const endToken = (service: TestService, token: string, headers = HOME) =>
  service.send('DELETE', TOKEN, { ...bearer(token), ...headers });

/** Ends a token of a new customer, from a network. */
async function endNew(service: TestService, ip: string): Promise<number> {
  const headers = { 'x-forwarded-for': ip };
  return (await endToken(service, (await newCustomer(service)).access_token, headers)).status;
}

/** Whether the feed has an entry, once it has an entry that was written later. */
async function isInFeed(service: TestService, value: string): Promise<boolean> {
  const { entity_id } = await newCustomer(service);
  expect((await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id)).status).toBe(200);
  const consumer = new FeedConsumer([service]);
  await consumer.find({ value: entity_id });
  return consumer.has({ value });
}

const sidOf = (token: string) => claimsOf(token).sid as string;

it('one anonymous browser that ends its tokens again and again gets 429 after 120 revocations in a minute', async () => {
  const service = await limited('');
  const cookie = cookieHeader(await service.post(TOKEN, cookieBody()));
  const statuses: Record<number, number> = {};
  await service.clock.whileStopped(async () => {
    for (let round = 0; round < 125; round++) {
      const { access_token } = (await service.post(TOKEN, cookieBody(), { cookie })).body;
      const { status } = await endToken(service, access_token);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  });
  expect(statuses).toEqual({ 200: 120, 429: 5 });
});

describe('protocol §2.14: the limit of revocations by network', () => {
  it('responds 429 with Retry-After until the next window, and ends nothing', async () => {
    const service = await limited('revocations=1/60');
    const { access_token } = await newCustomer(service);
    const other = await newCustomer(service);
    expect((await endToken(service, access_token)).status).toBe(200);
    const rejected = await endToken(service, other.access_token);
    expectLimited(rejected);
    expectLimited(await endSessions(service, other.access_token, {}, HOME));
    expect(await infoStatus(service, other.access_token)).toBe(200);
    expect(await isInFeed(service, sidOf(other.access_token))).toBe(false);
    service.clock.advance({ seconds: Number(rejected.headers.get('retry-after')) });
    expect((await endSessions(service, other.access_token, {}, HOME)).status).toBe(200);
    const next = await newCustomer(service);
    expectLimited(await endToken(service, next.access_token));
  });

  it('counts the ending of a token that has ended already as one entry', async () => {
    const service = await limited('revocations=2/3600');
    const { access_token } = await newCustomer(service);
    for (let round = 0; round < 2; round++) expect((await endToken(service, access_token)).status).toBe(200);
    expectLimited(await endToken(service, (await newCustomer(service)).access_token), 3_600);
  });

  it('does not count what a client with its secret, an agent or the operator ends', async () => {
    const service = await limited('revocations=1/3600');
    const agent = await issueAgentToken(service);
    const byAgent = async () =>
      (await service.post(TOKEN, agentTokenBody({ client_id: ACME_BACKEND }), bearer(agent))).body;
    const asClient = basic(ACME_BACKEND, BACKEND_SECRET);
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const revoke = (token: string, headers: object) =>
      manage(service, 'POST', '/oauth2/revoke', { ...headers, ...form, ...HOME }, `token=${token}`);
    expect((await endToken(service, (await newCustomer(service)).access_token)).status).toBe(200);
    for (let round = 0; round < 3; round++) {
      const { entity_id, access_token } = await byAgent();
      expect((await revoke(access_token, asClient)).status).toBe(200);
      expect(await infoStatus(service, access_token)).toBe(401);
      expect((await endSessions(service, agent, { customer_id: entity_id }, HOME)).status).toBe(200);
      expect((await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id)).status).toBe(200);
      expect((await revoke((await byAgent()).access_token, bearer(ADMIN_TOKEN))).status).toBe(200);
    }
    expectLimited(await endToken(service, (await newCustomer(service)).access_token), 3_600);
  });

  it('counts an IPv6 /56 as one network, and allows a /48 4 times the limit', async () => {
    const service = await limited('revocations=2/3600');
    const end = (fourth: string) => endNew(service, `2001:db8:1:${fourth}::1`);
    expect([await end('0'), await end('1'), await end('2'), await end('0')]).toEqual([200, 200, 429, 429]);
    for (const of56 of ['100', '200', '300']) expect([await end(of56), await end(`${of56}`)]).toEqual([200, 200]);
    expect(await end('400')).toBe(429); // the first of its /56, and the ninth of the /48
    expect(await endNew(service, '2001:db8:2::1')).toBe(200);
    for (const status of [200, 200, 429]) expect(await endNew(service, '203.0.113.7')).toBe(status);
    expect(await endNew(service, '203.0.113.8')).toBe(200);
  });
});

describe('POST /v2/customer/revoke', () => {
  const revoke = (service: TestService, token: string, client_id: string, more: object = {}) =>
    service.post('/v2/customer/revoke', { token, client_id, ...more }, HOME);
  const withSecret = { client_secret: BACKEND_SECRET };

  /** A new token of a customer that the backend obtained with an agent's token. */
  async function byBackend(service: TestService): Promise<string> {
    const agent = bearer(await issueAgentToken(service));
    return (await service.post(TOKEN, agentTokenBody({ client_id: ACME_BACKEND }), agent)).body.access_token;
  }

  it('with a secret has no limit of its own', async () => {
    const service = await limited('revocations=1/3600');
    for (let round = 0; round < 3; round++) {
      const token = await byBackend(service);
      expect((await revoke(service, token, ACME_BACKEND, withSecret)).status).toBe(200);
      expect(await infoStatus(service, token)).toBe(401);
    }
    expect((await revoke(service, (await newCustomer(service)).access_token, ACME_SITE)).status).toBe(200);
    expectLimited(await revoke(service, (await newCustomer(service)).access_token, ACME_SITE), 3_600);
  });

  it('does not count a request that writes no entry, with or without a secret', async () => {
    const service = await limited('revocations=1/86400');
    const { access_token } = await newCustomer(service);
    const unknown = `dev:${'x'.repeat(22)}.${'x'.repeat(43)}`;
    for (const token of ['unknown', unknown, (await agentTokenPair(service)).refresh_token])
      for (const more of [{}, withSecret]) expect((await revoke(service, token, ACME_BACKEND, more)).status).toBe(200);
    expect((await revoke(service, access_token, ACME_BACKEND, withSecret)).status, 'of another client').toBe(200);
    const own = await byBackend(service);
    expect((await revoke(service, own, ACME_BACKEND, withSecret)).status).toBe(200);
    expect(await infoStatus(service, own)).toBe(401);
    expect((await revoke(service, access_token, ACME_SITE)).status).toBe(200);
    expectLimited(await revoke(service, (await newCustomer(service)).access_token, ACME_SITE), 86_400);
  });

  it.each(['access_token', 'refresh_token'] as const)(
    'counts each entry, also of the sessions that end with the session of the token: %s',
    async (name) => {
      const service = await limited('revocations=4/3600');
      const device = await stayOf(service, undefined, {}, HOME);
      for (let made = 0; made < 2; made++) await redeem(service, await transferToken(service, device.access_token));
      expect((await revoke(service, device[name], ACME_SITE)).status).toBe(200);
      expect([await endNew(service, '203.0.113.7'), await endNew(service, '203.0.113.7')]).toEqual([200, 429]);
    },
  );
});

describe('a second use beyond the limit of revocations', () => {
  /** A service whose limit is used up in the network ELSEWHERE. */
  async function usedUp(): Promise<UsedService> {
    const service = await limited('revocations=1/3600');
    expect((await endToken(service, (await newCustomer(service)).access_token, ELSEWHERE)).status).toBe(200);
    return service;
  }
  /**
   * Uses a refresh token and its successor, so that a further use of the first one is a reuse. Returns the last tokens.
   */
  async function useUp(service: TestService, refreshToken: string): Promise<Stay> {
    const next = await refreshCustomer(service, refreshToken, {}, HOME);
    return (await refreshCustomer(service, next.body.refresh_token, {}, HOME)).body;
  }

  it('of a transfer token gets the error of a replay and ends what the first use gave, without an entry', async () => {
    const service = await usedUp();
    const code = await transferToken(service, (await newCustomer(service)).access_token);
    const { access_token } = (await redeem(service, code, {}, HOME)).body;
    expectInvalidGrant(await redeem(service, code, {}, ELSEWHERE));
    expect(await infoStatus(service, access_token)).toBe(401);
    expect(await isInFeed(service, sidOf(access_token))).toBe(false);
    expectInvalidGrant(await redeem(service, code, {}, HOME));
  });

  it('of a transfer token leaves an ending that the operator can still give to the feed', async () => {
    const service = await usedUp();
    const code = await transferToken(service, (await newCustomer(service)).access_token);
    const { access_token } = (await redeem(service, code, {}, HOME)).body;
    expectInvalidGrant(await redeem(service, code, {}, ELSEWHERE));
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const headers = { ...bearer(ADMIN_TOKEN), ...form };
    const revoked = await manage(service, 'POST', '/oauth2/revoke', headers, `token=${access_token}`);
    expect(revoked.status).toBe(200);
    expect(await isInFeed(service, claimsOf(access_token).jti as string)).toBe(true);
  });

  it('of a transfer token ends the browser and the refresh token that the first use gave', async () => {
    const service = await usedUp();
    const { entity_id, access_token } = await newCustomer(service);
    const move = await moveOf(service, access_token);
    const cookie = cookieHeader(await remember(service, move, { headers: HOME }));
    expect(await transferredSessionsOf(service, entity_id)).toHaveLength(1);
    expectInvalidGrant(await remember(service, move, { headers: ELSEWHERE }));
    expect(await transferredSessionsOf(service, entity_id)).toEqual([]);
    expect((await service.post(TOKEN, cookieBody(), { cookie })).body.entity_id).not.toBe(entity_id);

    const stayed = await moveOf(service, (await newCustomer(service)).access_token);
    const first = (await stay(service, stayed, {}, HOME)).body;
    expectInvalidGrant(await stay(service, stayed, {}, ELSEWHERE));
    expectInvalidGrant(await refreshCustomer(service, first.refresh_token, {}, HOME));
    expect(await infoStatus(service, first.access_token)).toBe(401);
    expect(await isInFeed(service, sidOf(first.access_token))).toBe(false);
  });

  it('of a customer’s refresh token ends its session without an entry', async () => {
    const service = await usedUp();
    const first = await stayOf(service, undefined, {}, HOME);
    const last = await useUp(service, first.refresh_token);
    for (const { refresh_token } of [first, first, last])
      expectInvalidGrant(await refreshCustomer(service, refresh_token, {}, ELSEWHERE));
    expect(await infoStatus(service, last.access_token)).toBe(401);
    expect(await isInFeed(service, sidOf(last.access_token))).toBe(false);
    expectInvalidGrant(await refreshCustomer(service, last.refresh_token, {}, HOME));
  });

  it('of a customer’s refresh token counts once, however often it is repeated', async () => {
    const service = await limited('revocations=2/3600');
    const { refresh_token } = await stayOf(service, undefined, {}, HOME);
    await useUp(service, refresh_token);
    for (let round = 0; round < 4; round++) expectInvalidGrant(await refreshCustomer(service, refresh_token, {}, HOME));
    const end = async () => (await endToken(service, (await newCustomer(service)).access_token)).status;
    expect([await end(), await end()]).toEqual([200, 429]);
  });

  it('takes from the limit while it is not reached', async () => {
    const service = await limited('revocations=2/3600');
    const code = await transferToken(service, (await newCustomer(service)).access_token);
    const { access_token } = (await redeem(service, code, {}, HOME)).body;
    expectInvalidGrant(await redeem(service, code, {}, ELSEWHERE));
    const first = await stayOf(service, undefined, {}, HOME);
    await useUp(service, first.refresh_token);
    expectInvalidGrant(await refreshCustomer(service, first.refresh_token, {}, ELSEWHERE));
    const consumer = new FeedConsumer([service]);
    for (const token of [access_token, first.access_token]) await consumer.find({ value: sidOf(token) });
    const { status } = await endToken(service, (await newCustomer(service)).access_token, ELSEWHERE);
    expect(status).toBe(429);
  });

  it('of an agent’s code or refresh token is not limited', async () => {
    const service = await usedUp();
    const code = await authorizationCode(service);
    const replayed = (await exchangeCode(service, code)).body;
    await ageRedemption(service, code, 3);
    expectInvalidGrant(await exchangeCode(service, code));
    const reused = await agentTokenPair(service);
    const next = (await refresh(service, reused.refresh_token)).body;
    await refresh(service, next.refresh_token);
    expectInvalidGrant(await refresh(service, reused.refresh_token));
    const consumer = new FeedConsumer([service]);
    for (const { access_token } of [replayed, reused]) await consumer.find({ value: sidOf(access_token) });
  });
});
