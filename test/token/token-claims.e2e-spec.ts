import { createRemoteJWKSet, jwtVerify } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { agentTokenBody, claimsOf } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';
import { INFO, newCustomer, redeem, transferToken } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const JWKS = '/.well-known/jwks.json';
const GROUP = 'Sales-1';
const GROUP_TOKEN = `/v2/customer/${ACME}/${GROUP}/token`;

const service = useService();
let agent: string;
beforeAll(async () => {
  agent = await issueAgentToken(service);
});

interface Token {
  entity_id: string;
  access_token: string;
  expires_in: number;
}
const cookieGrant = async (path = TOKEN): Promise<Token> => (await service.post(path, cookieBody())).body;
const agentGrant = async (more: object = {}): Promise<Token> =>
  (await service.post(TOKEN, agentTokenBody(more), bearer(agent))).body;
const info = async ({ access_token }: Token) => (await service.send('GET', INFO, bearer(access_token))).body;
const introspect = async (token: string) => (await service.admin('POST', '/oauth2/introspect', { token })).body;

describe('protocol §3.3: the claims gty, group_id and act of a customer token', () => {
  it('name the grant and, for a customer of a group, the group; info and introspection return them', async () => {
    const inGroup = await cookieGrant(GROUP_TOKEN);
    const alone = await cookieGrant();
    expect(claimsOf(inGroup.access_token)).toMatchObject({ gty: 'cookie', group_id: GROUP });
    expect(await info(inGroup)).toMatchObject({ gty: 'cookie', group_id: GROUP });
    expect(await introspect(inGroup.access_token)).toMatchObject({ gty: 'cookie', group_id: GROUP });
    for (const claims of [claimsOf(alone.access_token), await info(alone), await introspect(alone.access_token)]) {
      expect(claims.gty).toBe('cookie');
      expect(claims).not.toHaveProperty('group_id');
      expect(claims).not.toHaveProperty('act');
    }
  });

  it('name the group that the customer belongs to, also in the token of a returning customer', async () => {
    const first = await service.post(GROUP_TOKEN, cookieBody());
    const again = await service.post(GROUP_TOKEN, cookieBody(), { cookie: cookieHeader(first) });
    const outside = await service.post(TOKEN, cookieBody(), { cookie: cookieHeader(first) });
    expect(claimsOf(again.body.access_token).group_id).toBe(GROUP);
    expect(claimsOf(outside.body.access_token)).not.toHaveProperty('group_id');
  });

  it('name the group in the token that an agent gets for a customer of a group', async () => {
    const { entity_id } = await cookieGrant(GROUP_TOKEN);
    const token = await agentGrant({ entity_id });
    const { sub, client_id } = claimsOf(agent);
    const expected = { gty: 'agent_token', group_id: GROUP, act: { sub, client_id, ep: 0 } };
    expect(claimsOf(token.access_token)).toMatchObject(expected);
    expect(await info(token)).toMatchObject(expected);
    expect(await introspect(token.access_token)).toMatchObject(expected);
    for (const created of [await agentGrant(), await agentGrant({ external_id: 'user of the claims test' })])
      expect(claimsOf(created.access_token)).not.toHaveProperty('group_id');
  });

  it('name the own grant and the group of the customer in the token of a transfer', async () => {
    const { entity_id, access_token } = await cookieGrant(GROUP_TOKEN);
    const byCustomer = (await redeem(service, await transferToken(service, access_token))).body;
    expect(claimsOf(byCustomer.access_token)).toMatchObject({ gty: 'identity_token', group_id: GROUP });
    const code = await transferToken(service, agent, { bearer_type: 'agent', customer_id: entity_id });
    const byAgent = (await redeem(service, code)).body;
    expect(claimsOf(byAgent.access_token)).toMatchObject({ gty: 'identity_token', group_id: GROUP });
    expect((await info(byAgent)).act.sub).toBe(claimsOf(agent).sub);
  });
});

describe('GET /.well-known/jwks.json', () => {
  it('publishes only the public half of each key', async () => {
    const response = await service.send('GET', JWKS);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch(/^application\/json\b/);
    expect(response.body.keys).toEqual([
      {
        kty: 'EC',
        crv: 'P-256',
        x: expect.stringMatching(/^[\w-]{43}$/),
        y: expect.stringMatching(/^[\w-]{43}$/),
        kid: expect.stringMatching(/^[\w-]+$/),
        alg: 'ES256',
        use: 'sig',
      },
    ]);
    expect(response.text).not.toMatch(/"d"|nbf|exp/);
  });

  it('lets an independent library verify who calls, for one audience (protocol §3.1)', async () => {
    const keys = createRemoteJWKSet(new URL(service.url + JWKS));
    const expected = { issuer: 'https://auth.example', typ: 'at+jwt', algorithms: ['ES256'] };
    const verify = async (token: string, audience: string) =>
      (await jwtVerify(token.slice(token.indexOf(':') + 1), keys, { ...expected, audience })).payload;
    const { access_token, entity_id } = await newCustomer(service);
    const customer = await verify(access_token, 'customer-api');
    expect(customer).toMatchObject({ sub: entity_id, client_id: ACME_SITE, organization_id: ACME });
    expect(customer).not.toHaveProperty('scope');
    expect(await verify(agent, 'agent-api')).toMatchObject({ scope: 'customers:own', organization_id: ACME });
    await expect(verify(agent, 'customer-api')).rejects.toMatchObject({ claim: 'aud' });
    await expect(verify(access_token, 'agent-api')).rejects.toMatchObject({ claim: 'aud' });
  });
});
