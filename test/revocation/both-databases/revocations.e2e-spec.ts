import { describe, expect, it, vi } from 'vitest';
import { Registry } from '../../../src/registry/registry.js';
import { agentTokenBody, exchangeCode, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { deferred } from '../../support/deferred.js';
import { expectInvalidGrant, expectInvalidRequest, expectInvalidToken } from '../../support/expect-error.js';
import { purge } from '../../support/operator-commands.js';
import { rememberedPair } from '../../support/remember.js';
import { ACME, ACME_NATIVE, ACME_ORIGIN, ACME_SITE, RIVAL_ORIGIN } from '../../support/test-registry.js';
import {
  agentTokenPair,
  ageRedemption,
  authorizationCode,
  infoStatus,
  newCustomer,
  redeem,
  transferToken,
} from '../../support/transfers.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

const REVOKE = '/v2/customer/revoke';

const service = useService(() => {
  const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
  return { registry };
});

const revoke = (token: string, more: object = {}, headers: Record<string, string> = {}) =>
  service.post(REVOKE, { token, client_id: ACME_SITE, ...more }, headers);
const expire = () => service.clock.advance({ seconds: 28_800 + 1 });

describe('protocol §4.12: an expired customer token', () => {
  it('can be ended by its holder, and a browser, a refresh token and a transfer token that were made with it end', async () => {
    const known = await service.post(TOKEN, cookieBody());
    const { entity_id, access_token } = known.body;
    const pair = await rememberedPair(service, access_token);
    const { refresh_token } = await stayOf(service, access_token);
    service.clock.advance({ seconds: 28_000 });
    const code = await transferToken(service, access_token);
    service.clock.advance({ seconds: 801 });
    expect(await infoStatus(service, access_token)).toBe(401);
    expect(await service.send('DELETE', TOKEN, bearer(access_token))).toMatchObject({ status: 200, body: {} });
    expectInvalidGrant(await redeem(service, code));
    expectInvalidGrant(await refreshCustomer(service, refresh_token));
    expect(await service.idOf(pair)).not.toBe(entity_id);
    expect(await service.idOf(cookieHeader(known))).toBe(entity_id);
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status, 'ended already').toBe(200);
  });

  it('is ended at the revocation endpoint of clients too', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const pair = await rememberedPair(service, access_token);
    expire();
    expect((await revoke(access_token)).status).toBe(200);
    expect(await service.idOf(pair)).not.toBe(entity_id);
  });

  it.each([
    ['a damaged token', (token: string) => token.slice(0, -2)],
    ['an agent token', (_: string, agent: string) => agent],
  ])('is not %s, which gets invalid_token', async (_, change) => {
    const { access_token } = await newCustomer(service);
    const agent = (await agentTokenPair(service)).access_token;
    expire();
    expectInvalidToken(await service.send('DELETE', TOKEN, bearer(change(access_token, agent))));
  });
});

describe('protocol §4.15: revocation by a client', () => {
  it('ends the session of a refresh token by any of its tokens, with its access tokens and what was made with them', async () => {
    const first = await stayOf(service);
    const { body: next } = await refreshCustomer(service, first.refresh_token);
    const further = await stayOf(service, next.access_token);
    expect(await revoke(first.refresh_token)).toMatchObject({ status: 200, body: {} });
    for (const { access_token } of [first, next, further]) expect(await infoStatus(service, access_token)).toBe(401);
    for (const { refresh_token } of [next, further]) expectInvalidGrant(await refreshCustomer(service, refresh_token));
  });

  it('ends an access token, and reads a form', async () => {
    const { access_token } = await newCustomer(service);
    const form = new URLSearchParams({ token: access_token, client_id: ACME_SITE, token_type_hint: 'access_token' });
    const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: ACME_ORIGIN };
    const response = await service.post(REVOKE, form.toString(), headers);
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe(ACME_ORIGIN);
    expect(await infoStatus(service, access_token)).toBe(401);
  });

  it('changes nothing for a token that is unknown, of another client or of an agent, with the same response', async () => {
    const customer = await stayOf(service);
    const agent = await agentTokenPair(service);
    const expected = { status: 200, body: {} };
    expect(await revoke(customer.refresh_token, { client_id: ACME_NATIVE })).toMatchObject(expected);
    expect(await revoke(customer.access_token, { client_id: ACME_NATIVE })).toMatchObject(expected);
    for (const token of [agent.access_token, agent.refresh_token, 'unknown', `dev:${'x'.repeat(22)}.${'x'.repeat(43)}`])
      for (const client_id of [ACME_SITE, 'acme-backend'])
        expect((await revoke(token, { client_id })).status).toBe(200);
    expect(await infoStatus(service, customer.access_token)).toBe(200);
    expect((await refreshCustomer(service, customer.refresh_token)).status).toBe(200);
    expect((await service.send('DELETE', '/v2/token', bearer(agent.access_token))).status, 'still valid').toBe(200);
  });

  it('rejects the Origin of another client, an unknown client and a wrong secret, and ends nothing', async () => {
    const { access_token } = await newCustomer(service);
    expectInvalidRequest(await revoke(access_token, {}, { origin: RIVAL_ORIGIN }), /^Origin: /);
    expectInvalidRequest(await revoke(access_token, { client_id: 'nobody' }), /^client_id: /);
    expect((await revoke(access_token, { client_secret: 'wrong' })).status).toBe(401);
    expect(await infoStatus(service, access_token)).toBe(200);
  });
});

const SHORT_LIFETIMES = {
  CUSTOMER_TOKEN_TTL: '60',
  AGENT_TOKEN_TTL: '60',
  REFRESH_TOKEN_TTL: '60',
  TRANSFER_TOKEN_TTL: '60',
};

describe('lifetimes that are lowered after tokens were issued', () => {
  it('leave revoked tokens revoked for their full original lifetime', async () => {
    const before = await serviceOfTest();
    const customer = await newCustomer(before);
    const other = await newCustomer(before);
    const pair = await agentTokenPair(before);
    const replayed = await authorizationCode(before);
    const chain = (await exchangeCode(before, replayed)).body;
    const after = await serviceOfTest({ database: before.database, environment: SHORT_LIFETIMES });
    expect((await after.send('DELETE', TOKEN, bearer(customer.access_token))).status).toBe(200);
    expect((await after.send('DELETE', '/v2/token', bearer(pair.access_token))).status).toBe(200);
    expect((await after.admin('POST', '/oauth2/revoke', { token: pair.refresh_token })).status).toBe(200);
    await after.erase(other.entity_id);
    await ageRedemption(after, replayed, 3);
    expectInvalidGrant(await exchangeCode(after, replayed));
    for (const seconds of [600, 20_000]) {
      after.clock.advance({ seconds });
      await purge(after);
      for (const { access_token } of [customer, other]) expect(await infoStatus(after, access_token)).toBe(401);
      expect((await after.post(TOKEN, agentTokenBody(), bearer(pair.access_token))).status).toBe(401);
      for (const { refresh_token } of [pair, chain]) expectInvalidGrant(await refresh(after, refresh_token));
    }
  });

  it('leave a transferred token ended that lives longer than the ended token that it was made with', async () => {
    const before = await serviceOfTest();
    before.clock.advance({ seconds: -20_000 });
    const first = await newCustomer(before);
    before.clock.reset();
    const moved = (await redeem(before, await transferToken(before, first.access_token))).body;
    const after = await serviceOfTest({ database: before.database, environment: SHORT_LIFETIMES });
    expect((await after.send('DELETE', TOKEN, bearer(first.access_token))).status).toBe(200);
    after.clock.advance({ seconds: 20_000 }); // The first token has expired, and the transferred one has not.
    await purge(after);
    expect(await infoStatus(after, moved.access_token)).toBe(401);
  });

  it.each(['CUSTOMER_TOKEN_TTL', 'AGENT_TOKEN_TTL'])('cannot be longer than a day: %s', async (name) => {
    await expect(serviceOfTest({ environment: { [name]: '86401' } })).rejects.toThrow(
      `${name}: must not be greater than 86400`,
    );
  });
});

it('a token of a deleted client is refused, also if a process that did not know of the deletion issued it', async () => {
  const service = await serviceOfTest();
  const other = await serviceOfTest({ database: service.database });
  const client = { client_id: 'short-lived', name: 'Short-lived', client_type: 'web', organization_id: ACME };
  expect((await service.admin('POST', '/admin/clients', client)).status).toBe(201);
  const requestToken = async () => {
    const { status, body } = await other.visit(undefined, { client_id: client.client_id });
    return status === 200 ? (body.access_token as string) : undefined;
  };
  // renews the registry of the other process once, then makes its renewals wait
  const registry = other.application.get(Registry, { strict: false });
  const renew = registry.renew.bind(registry);
  const released = deferred();
  vi.spyOn(registry, 'renew').mockImplementation(() => released.promise.then(renew));
  await renew();
  expect((await service.admin('DELETE', `/admin/clients/${client.client_id}`)).status).toBe(200);
  const first = await requestToken();
  expect(first).toBeDefined();
  released.resolve();
  const tokens = [first as string];
  for (let token = await requestToken(); token; token = await requestToken()) tokens.push(token);
  for (const token of [tokens[0], tokens.at(-1)]) expect(await infoStatus(other, token as string)).toBe(401);
});
