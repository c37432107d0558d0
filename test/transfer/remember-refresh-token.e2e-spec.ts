import { describe, expect, it } from 'vitest';
import { claimsOf } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import {
  familiesOf,
  refreshCustomer,
  refreshingRegistry,
  type Stay,
  stay,
  stayOf,
} from '../support/customer-refresh.js';
import { failAtEachStatement, OUTAGE } from '../support/dying-transactions.js';
import { expectError, expectInvalidGrant, expectInvalidRequest } from '../support/expect-error.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { times, winnerOf } from '../support/races.js';
import { type Move, moveOf } from '../support/remember.js';
import { statementsOf } from '../support/statements.js';
import { ACME, RIVAL_ORIGIN } from '../support/test-registry.js';
import { type TestResponse } from '../support/test-service.js';
import { ageRedemption, infoStatus, newCustomer, redeem, transferToken } from '../support/transfers.js';
import { serviceOfTest, useService } from '../support/use-service.js';

const SALES = `/v2/customer/${ACME}/sales/token`;
const UNAUTHORIZED = { status: 400, error: 'unauthorized_client', hint: /^remember: / };
const STATEMENTS_OF_TRANSACTION = ['UPDATE', 'UPDATE', ...Array(4).fill('SELECT'), 'INSERT', 'INSERT'];

const service = useService({ registry: refreshingRegistry(), environment: { TRUST_PROXY: '1' } });

const from = (ip: string) => ({ 'x-forwarded-for': ip });
const move = async (token?: string) => moveOf(service, token ?? (await newCustomer(service)).access_token);
const hasEnded = async ({ access_token, refresh_token }: Stay) => {
  expectInvalidGrant(await refreshCustomer(service, refresh_token));
  expect(await infoStatus(service, access_token)).toBe(401);
};

describe('protocol §4.5: remember=refresh_token', () => {
  it('responds as without it and with a refresh token, and sets no cookie', async () => {
    const { access_token } = await newCustomer(service);
    const plain = await redeem(service, await transferToken(service, access_token));
    const response = await stay(service, await move(access_token));
    expect(response.status).toBe(200);
    expect(response.body).toEqual({
      ...plain.body,
      access_token: expect.any(String),
      refresh_token: expect.stringMatching(/^dev:[\w-]{22}\.[\w-]{43}$/),
    });
    expect(response.cookies).toEqual([]);
  });

  it('gives a family that has the id of the redemption, and stores hashes only', async () => {
    const { entity_id, access_token, refresh_token } = await stayOf(service);
    const [family, ...more] = await familiesOf(service, entity_id);
    expect(more).toEqual([]);
    expect(String(claimsOf(access_token).jti).startsWith(`${family?.id}.`)).toBe(true);
    expect(JSON.stringify(family)).not.toContain(refresh_token.slice(4));
  });

  it('has the group of the customer and the depth of the chain of transfers', async () => {
    const { access_token } = (await service.post(SALES, cookieBody())).body;
    const moved = await stayOf(service, access_token);
    const later = (await refreshCustomer(service, moved.refresh_token)).body;
    const { jti } = claimsOf(access_token);
    for (const token of [moved.access_token, later.access_token])
      expect(claimsOf(token)).toMatchObject({ transfers: 1, ancestors: [jti], gen: 0, group_id: 'sales' });
    let token: string = later.access_token;
    for (let depth = 2; depth <= 8; depth++) {
      const { refresh_token } = await stayOf(service, token);
      token = (await refreshCustomer(service, refresh_token)).body.access_token;
    }
    expect(claimsOf(token).transfers).toBe(8);
    const body = { bearer_type: 'customer', client_id: 'acme-site' };
    expectInvalidGrant(await service.post('/v2/customer/identity_transfer', body, bearer(token)));
  });

  it('does not end with the access token that was given with it', async () => {
    const { access_token, refresh_token } = await stayOf(service);
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
    expect((await refreshCustomer(service, refresh_token)).status).toBe(200);
  });

  it('carries the agent that created the transfer, and ends with the token of the agent', async () => {
    const agent = await issueAgentToken(service);
    const { entity_id } = await newCustomer(service);
    const moved = await stayOf(service, agent, { bearer_type: 'agent', customer_id: entity_id });
    const later = (await refreshCustomer(service, moved.refresh_token)).body;
    expect(claimsOf(later.access_token).act).toMatchObject({ sub: claimsOf(agent).sub });
    expect((await service.send('DELETE', '/v2/token', bearer(agent))).status).toBe(200);
    await hasEnded(later);
  });

  it('stores the redemption, the family and its ancestors in one transaction, which first changes the customer', async () => {
    const { access_token } = await newCustomer(service);
    const moved = await move(access_token);
    const sent = await statementsOf(service, () => stay(service, moved));
    expect(sent).toEqual(['SELECT', ...STATEMENTS_OF_TRANSACTION]);
  });

  it('is audited with the customer and the family', async () => {
    const { entity_id, access_token } = await stayOf(service);
    const family = String(claimsOf(access_token).jti).split('.')[0];
    const [event] = service.audit.filter(({ event: name }) => name === 'refresh_token.issued').slice(-1);
    expect(event).toMatchObject({ subject: { kind: 'customer', id: entity_id }, details: { family } });
  });
});

describe('protocol §4.5: a request with remember=refresh_token that is rejected', () => {
  const reject = async (send: (moved: Move) => Promise<TestResponse>) => {
    const { entity_id, access_token } = await newCustomer(service);
    const moved = await move(access_token);
    const response = await send(moved);
    expect(await familiesOf(service, entity_id)).toEqual([]);
    expect((await stay(service, moved)).status, 'the code is not redeemed').toBe(200);
    return response;
  };

  it.each([
    ['comes from a client whose entry does not list it', { grants: { identity_token: { remember: ['browser'] } } }],
    ['comes from a client without settings of the grant', { grants: {} }],
    ['comes from a client that does not list the grant refresh_token', { grant_types: ['cookie', 'identity_token'] }],
    ['comes from a client without grant_types', { grant_types: undefined }],
  ])('%s', async (_, entry) => {
    const other = await serviceOfTest({ registry: refreshingRegistry(entry) });
    const moved = await moveOf(other, (await newCustomer(other)).access_token);
    expectError(await stay(other, moved), UNAUTHORIZED);
    expect((await redeem(other, moved.code, { code_verifier: moved.verifier })).status).toBe(200);
  });

  it('has a code that was created without a code_challenge', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const code = await transferToken(service, access_token);
    expectInvalidRequest(await redeem(service, code, { remember: 'refresh_token' }), /^remember: /);
    expect(await familiesOf(service, entity_id)).toEqual([]);
    expect((await redeem(service, code)).status).toBe(200);
  });

  it.each([
    ['has replace', { replace: true }, {}, /^replace: /],
    ['has another value of remember', { remember: 'token' }, {}, /^remember: /],
    ['has the Origin of another client', {}, { origin: RIVAL_ORIGIN }, /^Origin: /],
  ])('%s', async (_, body, headers, hint) => {
    expectInvalidRequest(await reject((moved) => stay(service, moved, body, headers)), hint);
  });

  it('has a wrong verifier', async () => {
    expectInvalidGrant(await reject(({ code }) => stay(service, { code, verifier: 'v'.repeat(43) })));
  });

  it('fails at any statement of its transaction, with 503 and without a family', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const moved = await move(access_token);
    const errors = await failAtEachStatement(service, OUTAGE, async (hasFailed) => {
      expect((await stay(service, moved)).status).toBe(hasFailed() ? 503 : 200);
      expect(await familiesOf(service, entity_id)).toHaveLength(hasFailed() ? 0 : 1);
    });
    expect(errors).toBe(2 * STATEMENTS_OF_TRANSACTION.length);
  });
});

describe('protocol §3.7: a code that gave a customer a refresh token', () => {
  const NETWORK = from('203.0.113.7');

  it.each([
    ['ends nothing if it is sent again at once from the same network', 0, '203.0.113.7', 200],
    ['ends the refresh family if it is sent again after 3 s', 3, '203.0.113.7', 400],
    ['ends the refresh family if it is sent again from another network', 0, '203.0.113.8', 400],
  ])('%s', async (_, seconds, ip, status) => {
    const moved = await move();
    const first = (await stay(service, moved, {}, NETWORK)).body;
    const later = (await refreshCustomer(service, first.refresh_token, {}, NETWORK)).body;
    if (seconds > 0) await ageRedemption(service, moved.code, seconds);
    expectInvalidGrant(await stay(service, moved, {}, from(ip)));
    expect((await refreshCustomer(service, later.refresh_token, {}, NETWORK)).status).toBe(status);
    for (const { access_token } of [first, later])
      expect(await infoStatus(service, access_token)).toBe(status === 200 ? 200 : 401);
  });

  it('gives one family when 20 exchanges race', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const moved = await move(access_token);
    const winner = winnerOf(await times(20, () => stay(service, moved, {}, NETWORK)));
    expect(await familiesOf(service, entity_id)).toHaveLength(1);
    expect((await refreshCustomer(service, winner.body.refresh_token, {}, NETWORK)).status).toBe(200);
  });
});
