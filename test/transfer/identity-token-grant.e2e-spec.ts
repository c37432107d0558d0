import { randomUUID } from 'node:crypto';
import { describeGrant } from '@customer-authorization/conformance-kit';
import { beforeEach, describe, expect, it } from 'vitest';
import { IdentityTokenGrant } from '../../src/grants/identity-token/identity-token.grant.js';
import { sha256 } from '../../src/platform/secret.js';
import { agentTokenBody, exchangeCode, pkce, refresh } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { refreshingRegistry, stay } from '../support/customer-refresh.js';
import { expectInvalidGrant, expectInvalidToken } from '../support/expect-error.js';
import { purge } from '../support/operator-commands.js';
import { moveOf } from '../support/remember.js';
import { StatementGate } from '../support/statement-gate.js';
import { statementsOf } from '../support/statements.js';
import { ACME_BACKEND, ACME_NATIVE, ACME_SITE, PUBLIC_SITE } from '../support/test-registry.js';
import {
  agentTokenPair,
  ageRedemption,
  authorizationCode,
  INFO,
  infoStatus,
  newCustomer,
  redeem,
  sessionsIn,
  TRANSFER,
  transferBody,
  transferToken,
} from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const HOUR_SECONDS = 3_600;

const registry = refreshingRegistry();
const service = useService({ registry });
let customer: { entity_id: string; access_token: string };
beforeEach(async () => {
  customer = await newCustomer(service);
});

const transfer = (more: object = {}) => transferToken(service, customer.access_token, more);
const transferByAgent = async (token: string) =>
  transferToken(service, token, { bearer_type: 'agent', customer_id: customer.entity_id });
const exchange = (code: unknown, more: object = {}, headers: Record<string, string> = {}) =>
  redeem(service, code, more, headers);
/** Checks that an error response has not consumed the code: it still works, once. */
const expectNotConsumed = async (code: string, more: object = {}) => {
  expect(await exchange(code, more)).toMatchObject({ status: 200, body: { entity_id: customer.entity_id } });
};

describeGrant(IdentityTokenGrant, {
  valid: async ({ service, clientId, newCustomer }) => {
    const { accessToken } = await newCustomer();
    return { code: await transferToken(service, accessToken, { client_id: clientId }) };
  },
  forged: ({ code }) => [{ code: `${code}`.slice(0, -1) }],
});

describe('protocol §4.5: the exchange of a transfer token', () => {
  it('needs no Authorization header and no cookies, and ignores them, also those of another customer', async () => {
    const other = await service.visit();
    for (const headers of [
      { authorization: 'Bearer dev:x', cookie: '__svc_cid=x; __svc_cst=y' },
      { cookie: cookieHeader(other), ...bearer(other.body.access_token) },
    ]) {
      const response = await exchange(await transfer(), { entity_id: other.body.entity_id }, headers);
      expect(response).toMatchObject({ status: 200, cookies: [] });
      const fields = { client_id: ACME_SITE, entity_id: customer.entity_id, expires_in: 28_800, token_type: 'Bearer' };
      expect(response.body).toEqual({ access_token: expect.any(String), ...fields });
    }
  });

  it.each(['x', 'dev:', 'dev:x', `dev:${'A'.repeat(43)}`, '__proto__', "' OR 1=1 --", 'ä', '\u0000', '😀'])(
    'is refused for a code that was never issued: %j',
    async (code) => expectInvalidGrant(await exchange(code)),
  );

  it('is refused for a code in another spelling, without consuming the transfer token', async () => {
    const code = await transfer();
    const spellings = [code.replace(':', '%3A'), code.slice(4), ` ${code}`, `${code} `, `${code}=`, code.slice(0, -1)];
    for (const spelling of [...spellings, code.replace('dev', 'DEV'), code.replace('dev', 'eu')])
      expectInvalidGrant(await exchange(spelling));
    await expectNotConsumed(code);
  });
});

describe('protocol §3.6: the redemption of a transfer token', () => {
  it('by another client is refused without consuming the transfer token', async () => {
    const code = await transfer();
    for (const client_id of [PUBLIC_SITE, ACME_NATIVE, ACME_BACKEND])
      expectInvalidGrant(await exchange(code, { client_id }));
    await expectNotConsumed(code);
  });

  const { verifier, asked } = pkce();
  it.each([
    ['missing', {}],
    ['another', { code_verifier: pkce().verifier }],
  ])('is refused without consuming the transfer token if the verifier of the challenge is %s', async (_, wrong) => {
    const code = await transfer(asked);
    expectInvalidGrant(await exchange(code, wrong));
    await expectNotConsumed(code, { code_verifier: verifier });
  });

  it.each([pkce().verifier, 'x'])(
    'is refused with a verifier if the transfer token has no challenge: %j',
    async (code_verifier) => {
      const code = await transfer();
      expectInvalidGrant(await exchange(code, { code_verifier }));
      await expectNotConsumed(code);
    },
  );

  it('is refused for an authorization code, a refresh token or an access token, which all stay valid', async () => {
    const pair = await agentTokenPair(service);
    const code = await authorizationCode(service);
    for (const wrong of [code, pair.refresh_token, pair.access_token, customer.access_token])
      expectInvalidGrant(await exchange(wrong, { client_id: ACME_BACKEND }));
    expect((await exchangeCode(service, code)).status).toBe(200);
    expect((await refresh(service, pair.refresh_token)).status).toBe(200);
  });

  it('is its only use: it is no authorization code, no refresh token and no bearer token', async () => {
    const code = await transfer({ client_id: ACME_BACKEND });
    expectInvalidGrant(await exchangeCode(service, code));
    expectInvalidGrant(await refresh(service, code));
    for (const method of ['GET', 'DELETE'])
      expectInvalidToken(await service.send(method, method === 'GET' ? INFO : TOKEN, bearer(code)));
    expectInvalidToken(await service.post(TOKEN, agentTokenBody(), bearer(code)));
    expectInvalidToken(await service.post(TRANSFER, transferBody(), bearer(code)));
    await expectNotConsumed(code, { client_id: ACME_BACKEND });
  });
});

/** Redeems a code again so late after the redemption that it counts as a replay. */
async function replay(code: string, more: object = {}): Promise<void> {
  await ageRedemption(service, code, 3);
  expectInvalidGrant(await exchange(code, more));
}

describe('a redeemed transfer token', () => {
  it('revokes the token of the first redemption, and no other, when it is replayed', async () => {
    const code = await transfer();
    const { access_token } = (await exchange(code)).body;
    expect(await infoStatus(service, access_token)).toBe(200);
    await replay(code);
    expect(await infoStatus(service, access_token)).toBe(401);
    expect(await infoStatus(service, customer.access_token)).toBe(200);
    expectInvalidGrant(await exchange(code));
    expect((await exchange(await transfer())).status).toBe(200);
  });

  it('revokes nothing if the same network uses it again within 2 s', async () => {
    const code = await transfer();
    const { access_token } = (await exchange(code)).body;
    await ageRedemption(service, code, 1);
    expectInvalidGrant(await exchange(code));
    expect(await infoStatus(service, access_token)).toBe(200);
    await ageRedemption(service, code, 1);
    expectInvalidGrant(await exchange(code));
    expect(await infoStatus(service, access_token)).toBe(401);
  });

  it('revokes the token if the replay presents the right verifier, and nothing without the matching parameters', async () => {
    const { verifier, asked } = pkce();
    const code = await transfer(asked);
    const { access_token } = (await exchange(code, { code_verifier: verifier })).body;
    await replay(code);
    await replay(code, { code_verifier: pkce().verifier });
    await replay(code, { code_verifier: verifier, client_id: PUBLIC_SITE });
    expect(await infoStatus(service, access_token)).toBe(200);
    await replay(code, { code_verifier: verifier });
    expect(await infoStatus(service, access_token)).toBe(401);
  });

  it('revokes the token if the replay comes after the transfer token would have expired', async () => {
    const code = await transfer();
    const { access_token } = (await exchange(code)).body;
    service.clock.advance({ seconds: 3_601 });
    await replay(code);
    expect(await infoStatus(service, access_token)).toBe(401);
  });
});

describe('a transfer token is invalid', () => {
  it('but not when another token of the customer was revoked, or the agent’s was refreshed', async () => {
    const { access_token } = (await exchange(await transfer())).body;
    const code = await transfer();
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
    await expectNotConsumed(code);
    const pair = await agentTokenPair(service);
    const byAgent = await transferByAgent(pair.access_token);
    expect((await refresh(service, pair.refresh_token)).status).toBe(200);
    await expectNotConsumed(byAgent);
  });

  it('but not when the token with which it was created has only expired', async () => {
    const later = await newCustomer(service);
    service.clock.advance({ seconds: 28_800 - 60 });
    const code = await transferToken(service, later.access_token);
    service.clock.advance({ seconds: 600 });
    expect(await infoStatus(service, later.access_token)).toBe(401);
    const { body } = await exchange(code);
    expect(body.entity_id).toBe(later.entity_id);
    expect(await infoStatus(service, body.access_token)).toBe(200);
  });

  it('for its whole lifetime, also after the denylist entry of the revoked token was purged', async () => {
    const later = await newCustomer(service);
    service.clock.advance({ seconds: 28_800 - 60 });
    const code = await transferToken(service, later.access_token);
    expect((await service.send('DELETE', TOKEN, bearer(later.access_token))).status).toBe(200);
    service.clock.advance({ seconds: 120 });
    await purge(service);
    expectInvalidGrant(await exchange(code));
  });
});

describe('a clock that is set back and forward again', () => {
  it('does not let a code be redeemed twice at any later time', async () => {
    const code = await transferToken(service, customer.access_token);
    expect((await redeem(service, code)).status).toBe(200);
    for (const seconds of [-1, -HOUR_SECONDS, 2 * HOUR_SECONDS, -HOUR_SECONDS, -24 * HOUR_SECONDS]) {
      service.clock.advance({ seconds });
      expectInvalidGrant(await redeem(service, code));
    }
  });

  it('does not let an expired code give two tokens', async () => {
    const code = await transferToken(service, customer.access_token);
    service.clock.advance({ seconds: HOUR_SECONDS });
    expectInvalidGrant(await redeem(service, code));
    service.clock.advance({ seconds: -HOUR_SECONDS });
    expect((await redeem(service, code)).status).toBe(200);
    expectInvalidGrant(await redeem(service, code));
  });

  it('does not give a refresh token a second valid successor, and reuse still ends the session', async () => {
    const first = (await agentTokenPair(service)).refresh_token;
    const next = (await refresh(service, first)).body.refresh_token;
    service.clock.advance({ seconds: -HOUR_SECONDS });
    const last = (await refresh(service, next)).body.refresh_token;
    for (const used of [first, next, last]) expectInvalidGrant(await refresh(service, used));
  });
});

const end = async (token: string) => expect((await service.send('DELETE', TOKEN, bearer(token))).status).toBe(200);

describe('an exchange of a transfer token', () => {
  it('sends two statements: one reads the code, and one checks and redeems it', async () => {
    const { access_token } = await newCustomer(service);
    const code = await transferToken(service, access_token);
    let status = 0;
    const sent = await statementsOf(service, async () => {
      ({ status } = await redeem(service, code));
    });
    expect([status, sent]).toEqual([200, ['SELECT', 'UPDATE']]);
  });

  it('is refused if the bearer ends after the code was read, and no session is left of the code', async () => {
    const { access_token } = await newCustomer(service);
    const code = await transferToken(service, access_token);
    const requestId = randomUUID();
    const gate = new StatementGate(service, requestId, 1);
    const exchange = redeem(service, code, {}, { 'x-request-id': requestId });
    await gate.reached;
    await end(access_token);
    gate.close();
    expectInvalidGrant(await exchange);
    expect(await sessionsIn(service).findOneBy({ codeHash: sha256(code) })).toBeNull();
  });

  it('stores nothing for a bearer that has ended, with or without remember', async () => {
    const { access_token } = await newCustomer(service);
    const code = await transferToken(service, access_token);
    const move = await moveOf(service, access_token);
    await end(access_token);
    const before = await sessionsIn(service).find();
    expectInvalidGrant(await stay(service, move));
    expectInvalidGrant(await redeem(service, code));
    expect(await sessionsIn(service).find()).toEqual(before);
  });
});
