import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { newCustomer, redeem, transferToken } from '../support/transfers.js';

let service: TestService;
let customer: { entity_id: string; access_token: string };
let agentToken: string;
beforeAll(async () => {
  service = await startTestService();
  customer = await newCustomer(service);
  agentToken = await issueAgentToken(service);
});
afterAll(() => service?.stop());

/** An API that accepts tokens with one audience, and knows only the URL of the authorization server. */
class ResourceServer {
  private readonly keys = createRemoteJWKSet(new URL(`${service.url}/.well-known/jwks.json`));

  constructor(private readonly audience: string) {}

  /** Resolves to the claims of the caller; rejects if the token is not valid for this API. */
  async verify(token: string): Promise<JWTPayload> {
    const jws = token.slice(token.indexOf(':') + 1); // without the region prefix
    const expected = { issuer: 'https://auth.example', audience: this.audience, typ: 'at+jwt', algorithms: ['ES256'] };
    return (await jwtVerify(jws, this.keys, { ...expected, requiredClaims: ['sub', 'exp', 'jti'] })).payload;
  }
}

describe('a resource server that checks tokens offline, by an independent library', () => {
  const customerApi = () => new ResourceServer('customer-api');
  const agentApi = () => new ResourceServer('agent-api');

  it('learns from a customer token who calls, with a token of each grant', async () => {
    const byAgent = await service.post(
      TOKEN,
      { grant_type: 'agent_token', client_id: ACME_SITE, response_type: 'token', entity_id: customer.entity_id },
      bearer(agentToken),
    );
    const moved = await redeem(service, await transferToken(service, customer.access_token));
    for (const token of [customer.access_token, byAgent.body.access_token, moved.body.access_token]) {
      const caller = await customerApi().verify(token);
      expect(caller).toMatchObject({ sub: customer.entity_id, client_id: ACME_SITE, organization_id: ACME });
      expect(caller).not.toHaveProperty('scope');
    }
  });

  it('learns from an agent token who calls, and with which scope', async () => {
    expect(await agentApi().verify(agentToken)).toMatchObject({ scope: 'customers:own', organization_id: ACME });
  });

  it('rejects an agent token as a customer token, and the reverse (protocol §3.1)', async () => {
    await expect(customerApi().verify(agentToken)).rejects.toMatchObject({ claim: 'aud' });
    await expect(agentApi().verify(customer.access_token)).rejects.toMatchObject({ claim: 'aud' });
  });

  it.each<[string, (segments: string[]) => string[]]>([
    ['another subject', ([header = '', claims = '', signature = '']) => [header, edited(claims), signature]],
    ['another audience', ([header = '', claims = '', signature = '']) => [header, edited(claims, 'aud'), signature]],
    [
      'the claims of another token',
      ([header = '', , signature = '']) => [header, agentToken.split('.')[1] ?? '', signature],
    ],
    ['another signature', ([header = '', claims = '']) => [header, claims, agentToken.split('.')[2] ?? '']],
    ['no signature', ([header = '', claims = '']) => [header, claims, '']],
    ['no algorithm', ([, claims = '']) => [encoded({ alg: 'none', typ: 'at+jwt' }), claims, '']],
  ])('rejects a token with %s', async (_, tamper) => {
    const [region = '', jws = ''] = customer.access_token.split(':');
    const tampered = `${region}:${tamper(jws.split('.')).join('.')}`;
    for (const api of [customerApi(), agentApi()]) await expect(api.verify(tampered)).rejects.toThrow();
  });

  it('rejects a token of another service', async () => {
    const keys = createRemoteJWKSet(new URL(`${service.url}/.well-known/jwks.json`));
    const other = await startTestService({ environment: { AUTH_URL: 'https://other.example' } });
    try {
      const { access_token } = (await other.post(TOKEN, cookieBody())).body;
      await expect(customerApi().verify(access_token)).rejects.toMatchObject({
        code: 'ERR_JWKS_NO_MATCHING_KEY',
      });
      await expect(jwtVerify(access_token.split(':')[1], keys)).rejects.toThrow();
    } finally {
      await other.stop();
    }
  });
});

function edited(claims: string, claim = 'sub'): string {
  return encoded({ ...JSON.parse(Buffer.from(claims, 'base64url').toString()), [claim]: 'another-subject' });
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
