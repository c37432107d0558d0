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

/** An API that takes tokens of one kind, and knows of the authorization server nothing but its address. */
class ResourceServer {
  private readonly keys = createRemoteJWKSet(new URL(`${service.url}/.well-known/jwks.json`));

  constructor(private readonly audience: string) {}

  /** The caller; rejects when the token is not good here. */
  async claimsOf(token: string): Promise<JWTPayload> {
    const jws = token.slice(token.indexOf(':') + 1); // before it stands the region
    const expected = { issuer: 'https://auth.example', audience: this.audience, typ: 'at+jwt', algorithms: ['ES256'] };
    return (await jwtVerify(jws, this.keys, { ...expected, requiredClaims: ['sub', 'exp', 'jti'] })).payload;
  }
}

describe('a resource server that checks tokens offline, by an independent library', () => {
  const customerApi = () => new ResourceServer('customer-api');
  const agentApi = () => new ResourceServer('agent-api');

  it('learns from a customer’s token who calls, whichever grant gave it', async () => {
    const byAgent = await service.post(
      TOKEN,
      { grant_type: 'agent_token', client_id: ACME_SITE, response_type: 'token', entity_id: customer.entity_id },
      bearer(agentToken),
    );
    const moved = await redeem(service, await transferToken(service, customer.access_token));
    for (const token of [customer.access_token, byAgent.body.access_token, moved.body.access_token]) {
      const caller = await customerApi().claimsOf(token);
      expect(caller).toMatchObject({ sub: customer.entity_id, client_id: ACME_SITE, organization_id: ACME });
      expect(caller).not.toHaveProperty('scope');
    }
  });

  it('learns from an agent’s token who calls, and what it may', async () => {
    expect(await agentApi().claimsOf(agentToken)).toMatchObject({ scope: 'customers:own', organization_id: ACME });
  });

  it('refuses an agent’s token as a customer’s, and the reverse (protocol §3.1)', async () => {
    await expect(customerApi().claimsOf(agentToken)).rejects.toMatchObject({ claim: 'aud' });
    await expect(agentApi().claimsOf(customer.access_token)).rejects.toMatchObject({ claim: 'aud' });
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
  ])('refuses a token with %s', async (_, tamper) => {
    const [region = '', jws = ''] = customer.access_token.split(':');
    const tampered = `${region}:${tamper(jws.split('.')).join('.')}`;
    for (const api of [customerApi(), agentApi()]) await expect(api.claimsOf(tampered)).rejects.toThrow();
  });

  it('refuses what is no access token: a transfer token, a token still spelt with %3A', async () => {
    const code = await transferToken(service, customer.access_token);
    for (const wrong of [code, customer.access_token.replace(':', '%3A'), `${customer.access_token}x`])
      await expect(customerApi().claimsOf(wrong)).rejects.toThrow();
  });

  it('refuses a token of another service with the same name', async () => {
    const keys = createRemoteJWKSet(new URL(`${service.url}/.well-known/jwks.json`));
    const other = await startTestService({ environment: { AUTH_URL: 'https://other.example' } });
    try {
      const { access_token } = (await other.post(TOKEN, cookieBody())).body;
      await expect(customerApi().claimsOf(access_token)).rejects.toMatchObject({
        code: 'ERR_JWKS_NO_MATCHING_KEY',
      });
      await expect(jwtVerify(access_token.split(':')[1], keys)).rejects.toThrow();
    } finally {
      await other.stop();
    }
  });
});

function edited(claims: string, claim = 'sub'): string {
  return encoded({ ...JSON.parse(Buffer.from(claims, 'base64url').toString()), [claim]: 'somebody-else' });
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
