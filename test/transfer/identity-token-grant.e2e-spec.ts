import { describeGrant } from 'conformance-kit';
import { beforeEach, describe, expect, it } from 'vitest';
import { IdentityTokenGrant } from '../../src/grants/identity-token/identity-token.grant.js';
import { sha256 } from '../../src/platform/secret.js';
import { agentTokenBody, claimsOf, exchangeCode, pkce, refresh } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { expectInvalidGrant, expectInvalidRequest, expectInvalidToken } from '../support/expect-error.js';
import { identitiesOf } from '../support/identities.js';
import { issueAgentToken, purge } from '../support/operator-commands.js';
import { startPod } from '../support/processes.js';
import { ACME, ACME_BACKEND, ACME_NATIVE, ACME_SITE, PUBLIC_SITE, testRegistry } from '../support/test-registry.js';
import { request } from '../support/test-service.js';
import {
  agentTokenPair,
  ageRedemption,
  authorizationCode,
  codesOf,
  INFO,
  infoStatus,
  newCustomer,
  redeem,
  redeemBody,
  TRANSFER,
  transferBody,
  transferToken,
} from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const registry = testRegistry();

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
  singleUse: true,
  boundToClient: true,
  lifetime: 3_600,
});

describe('protocol §4.5: the exchange of a transfer token', () => {
  it('responds with exactly the fields of protocol §4.9 for the same customer, and sets no cookie', async () => {
    const before = await identitiesOf(service).find({ where: { entityId: customer.entity_id } });
    const { status, body, cookies } = await exchange(await transfer());
    expect(status).toBe(200);
    expect(body).toEqual({
      access_token: expect.stringMatching(/^dev:[\w-]+\.[\w-]+\.[\w-]+$/),
      client_id: ACME_SITE,
      entity_id: customer.entity_id,
      expires_in: 28_800,
      token_type: 'Bearer',
    });
    expect(cookies).toEqual([]);
    expect(await identitiesOf(service).find({ where: { entityId: customer.entity_id } })).toEqual(before);
  });

  it('issues a token of the customer’s organization, also if an agent created the transfer token', async () => {
    for (const code of [await transfer(), await transferByAgent(await issueAgentToken(service))]) {
      const { access_token } = (await exchange(code)).body;
      const { sub, aud, client_id, organization_id, ...more } = claimsOf(access_token);
      expect({ sub, aud, client_id, organization_id }).toEqual({
        sub: customer.entity_id,
        aud: 'customer-api',
        client_id: ACME_SITE,
        organization_id: ACME,
      });
      expect(more).toMatchObject({ gen: 0, transfers: 1, ancestors: [expect.any(String)] });
      const info = await service.send('GET', INFO, bearer(access_token));
      expect(info).toMatchObject({ status: 200, body: { entity_id: customer.entity_id } });
    }
  });

  it('requires the client that the transfer named, private or public', async () => {
    for (const client_id of [ACME_NATIVE, ACME_BACKEND, PUBLIC_SITE]) {
      const code = await transfer({ client_id });
      expect(await exchange(code, { client_id })).toMatchObject({ status: 200, body: { client_id } });
    }
  });

  it('needs no Authorization header and no cookies, and ignores invalid ones', async () => {
    const headers = { authorization: 'Bearer dev:x', cookie: '__svc_cid=x; __svc_cst=y' };
    expect(await exchange(await transfer(), {}, headers)).toMatchObject({ status: 200, cookies: [] });
  });

  it('ignores the cookies and the token of another customer', async () => {
    const other = await service.post(TOKEN, cookieBody());
    const headers = { cookie: cookieHeader(other), ...bearer(other.body.access_token) };
    const response = await exchange(await transfer(), { entity_id: other.body.entity_id }, headers);
    expect(response).toMatchObject({ status: 200, cookies: [], body: { entity_id: customer.entity_id } });
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

  it.each([{}, asked])(
    'with an empty code_verifier is an invalid request and does not consume the transfer token (%#)',
    async (challenge) => {
      const code = await transfer(challenge);
      expectInvalidRequest(await exchange(code, { code_verifier: '' }), 'code_verifier: must not be empty');
      await expectNotConsumed(code, challenge === asked ? { code_verifier: verifier } : {});
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
    await replay(code);
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

  it('revokes nothing within 2 s if the network of the first use is not known', async () => {
    const code = await transfer();
    const { access_token } = (await exchange(code)).body;
    await codesOf(service).update({ hash: sha256(code) }, { consumedNetwork: null });
    expectInvalidGrant(await exchange(code));
    expect(await infoStatus(service, access_token)).toBe(200);
  });

  it('revokes the token if the replay presents the right verifier', async () => {
    const { verifier, asked } = pkce();
    const code = await transfer(asked);
    const { access_token } = (await exchange(code, { code_verifier: verifier })).body;
    await replay(code, { code_verifier: verifier });
    expect(await infoStatus(service, access_token)).toBe(401);
  });

  it('revokes nothing if the replay comes without the matching parameters', async () => {
    const { verifier, asked } = pkce();
    const code = await transfer(asked);
    const { access_token } = (await exchange(code, { code_verifier: verifier })).body;
    await replay(code);
    await replay(code, { code_verifier: pkce().verifier });
    await replay(code, { code_verifier: verifier, client_id: PUBLIC_SITE });
    expect(await infoStatus(service, access_token)).toBe(200);
  });

  it('revokes the token if the replay reaches another process', async () => {
    const pod = await startPod(service);
    try {
      const code = await transfer();
      const { access_token } = (await exchange(code)).body;
      await ageRedemption(service, code, 3);
      const again = () => request(pod.url + TOKEN, { method: 'POST', body: JSON.stringify(redeemBody(code)) });
      expectInvalidGrant(await again());
      expect(await infoStatus(service, access_token)).toBe(401);
      expectInvalidGrant(await again());
    } finally {
      expect(await pod.terminate()).toBe(0);
    }
  });

  it('revokes the token if the replay comes after the transfer token would have expired', async () => {
    const code = await transfer();
    const { access_token } = (await exchange(code)).body;
    service.clock.advance({ seconds: 3_601 });
    await replay(code);
    expect(await infoStatus(service, access_token)).toBe(401);
  });
});

describe('a transfer token is valid for 3600 seconds by default', () => {
  it('and can be exchanged one second before its end, but not at its end', async () => {
    const [early, late, later] = [await transfer(), await transfer(), await transfer()];
    service.clock.advance({ seconds: 3_598 });
    expect((await exchange(early)).status).toBe(200);
    service.clock.advance({ seconds: 2 });
    expectInvalidGrant(await exchange(late));
    service.clock.advance({ seconds: 1_000_000 });
    expectInvalidGrant(await exchange(later));
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
    expect(await exchange(code)).toMatchObject({ status: 200, body: { entity_id: later.entity_id } });
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
