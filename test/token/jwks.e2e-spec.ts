import { createRemoteJWKSet, jwtVerify } from 'jose';
import { describe, expect, it } from 'vitest';
import { issueAgentToken } from '../support/operator-commands.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';
import { newCustomer } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const JWKS = '/.well-known/jwks.json';

const service = useService();

describe('GET /.well-known/jwks.json', () => {
  it('publishes only the public half of each key', async () => {
    const response = await service.send('GET', JWKS);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch(/^application\/json\b/);
    expect(Object.keys(response.body)).toEqual(['keys']);
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
    const agentToken = await issueAgentToken(service);
    const customer = await verify(access_token, 'customer-api');
    expect(customer).toMatchObject({ sub: entity_id, client_id: ACME_SITE, organization_id: ACME });
    expect(customer).not.toHaveProperty('scope');
    expect(await verify(agentToken, 'agent-api')).toMatchObject({ scope: 'customers:own', organization_id: ACME });
    await expect(verify(agentToken, 'customer-api')).rejects.toMatchObject({ claim: 'aud' });
    await expect(verify(access_token, 'agent-api')).rejects.toMatchObject({ claim: 'aud' });
  });
});
