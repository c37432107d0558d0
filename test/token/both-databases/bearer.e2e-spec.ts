import { generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { HttpCode, Module, Post, UseGuards } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AccessTokenModule } from '../../../src/access-token/access-token.module.js';
import { AccessTokens, type IssuableClaims } from '../../../src/access-token/access-tokens.js';
import { Revocation } from '../../../src/access-token/revocation.entity.js';
import { SigningKeys } from '../../../src/access-token/signing-keys.js';
import { BearerModule } from '../../../src/bearer/bearer.module.js';
import { BearerAuthGuard } from '../../../src/bearer/bearer.strategy.js';
import { AnyOrigin, ApiRoute, PublicController } from '../../../src/public/grant.js';
import { agentTokenBody, claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { expectError } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { exchange, rawRequest } from '../../support/raw-http.js';
import { ACME, ACME_SITE, RIVAL } from '../../support/test-registry.js';
import { request, startTestService, type TestResponse, type TestService } from '../../support/test-service.js';

const INFO = '/v2/customer/info';
const TTL_SECONDS = 28_800;

let service: TestService;
let agentToken: string;
let customerToken: string;

@PublicController('guarded')
class GuardedController {
  @Post()
  @HttpCode(200)
  @UseGuards(BearerAuthGuard)
  @AnyOrigin()
  @ApiRoute({ summary: 'Guarded', description: 'A route with the guard of passport alone.' })
  respond(): object {
    return {};
  }
}

@Module({ imports: [AccessTokenModule, BearerModule], controllers: [GuardedController] })
class GuardedModule {}

beforeAll(async () => {
  service = await startTestService({ modules: [GuardedModule] });
  agentToken = await issueAgentToken(service);
  customerToken = (await service.post(TOKEN, cookieBody())).body.access_token;
});
afterAll(() => service?.stop());

describe('protocol §3.1: the two kinds of token', () => {
  it('allow an agent to create a customer, and a customer to read its own token information', async () => {
    expect(await asAgent(agentToken)).toMatchObject({ status: 200 });
    expect(await asCustomer(customerToken)).toMatchObject({ status: 200, body: { access_token: customerToken } });
  });

  it('are not accepted in place of each other', async () => {
    expectInvalidToken(await asAgent(customerToken));
    expectInvalidToken(await asCustomer(agentToken));
    expectInvalidToken(await service.send('DELETE', '/v2/token', bearer(customerToken)));
  });

  it('are verified by the service that gets the request, also if another one runs in the same process', async () => {
    const other = await startTestService();
    try {
      expect(await asAgent(agentToken)).toMatchObject({ status: 200 });
      expectInvalidToken(await other.post(TOKEN, agentTokenBody(), bearer(agentToken)));
    } finally {
      await other.stop();
    }
    expect(await asCustomer(customerToken)).toMatchObject({ status: 200 });
  });

  it.each([
    ['a scope does not make a customer an agent', { aud: 'customer-api' }],
    ['a list of audiences is not an accepted audience', { aud: ['agent-api'] }],
    ['the audience of another service', { aud: 'admin-api' }],
  ])('differ by the audience alone: %s', async (_, claims) => {
    expectInvalidToken(await asAgent(issue(claims)));
  });

  it.each(['agent-api', 'admin-api', ['customer-api'], undefined])(
    'differ by the audience alone: a token for a customer’s subject is invalid with the audience %j',
    async (aud) => {
      const { sub } = claimsOf(customerToken);
      expect((await asCustomer(issue({ sub, scope: undefined, aud: 'customer-api' }))).status).toBe(200);
      expectInvalidToken(await asCustomer(issue({ sub, scope: undefined, aud })));
    },
  );
});

describe('protocol §2.6: a bearer token', () => {
  it('authenticates its own request, also if requests of other callers run at the same time', async () => {
    const others = await Promise.all([1, 2, 3].map(() => service.post(TOKEN, cookieBody())));
    const tokens = [customerToken, ...others.map(({ body }) => body.access_token as string)];
    const shown = await Promise.all([...tokens, ...tokens].map((token) => asCustomer(token)));
    expect(shown.map(({ body }) => body.entity_id)).toEqual([...tokens, ...tokens].map((token) => claimsOf(token).sub));
  });

  it.each(['Bearer', 'bearer', 'BEARER'])('may be sent with the scheme %s (RFC 9110 §11.1)', async (scheme) => {
    const response = await service.post(TOKEN, agentTokenBody(), { authorization: `${scheme} ${agentToken}` });
    expect(response.status).toBe(200);
  });

  it.each([
    ['no header', () => ({})],
    ['an empty header', () => ({ authorization: '' })],
    ['no token', () => ({ authorization: 'Bearer' })],
    ['no scheme', () => ({ authorization: agentToken })],
    ['another scheme', () => ({ authorization: `Token ${agentToken}` })],
    ['two tokens', () => ({ authorization: `Bearer ${agentToken} ${agentToken}` })],
    ['a list of tokens', () => ({ authorization: `Bearer ${agentToken},${agentToken}` })],
    ['another header', () => ({ 'x-access-token': agentToken, cookie: `access_token=${agentToken}` })],
  ])('is refused with %s', async (_, headers: () => Record<string, string>) => {
    expectInvalidToken(await service.post(TOKEN, agentTokenBody(), headers()));
  });

  it('is refused if the request has two Authorization headers, even valid ones', async () => {
    const header = `Authorization: Bearer ${agentToken}`;
    const send = (headers: string[]) =>
      exchange(service.url, rawRequest(`POST ${TOKEN}`, JSON.stringify(agentTokenBody()), headers));
    expect((await send([header])).status).toBe(200);
    expectInvalidToken(await send([header, header]));
    expectInvalidToken(await send([header, 'Authorization: Basic eDp5']));
    expectInvalidToken(await send(['Authorization: Basic eDp5', header]));
  });

  it('is refused with two Authorization headers by a route of an extension that uses the guard alone', async () => {
    const header = `Authorization: Bearer ${agentToken}`;
    const send = (headers: string[]) => exchange(service.url, rawRequest('POST /guarded', '{}', headers));
    expect((await send([header])).status).toBe(200);
    expectInvalidToken(await send([header, header]));
  });

  it('is not read from the body or the query', async () => {
    expectInvalidToken(await service.post(TOKEN, agentTokenBody({ access_token: agentToken })));
    expectInvalidToken(await service.post(`${TOKEN}?access_token=${agentToken}`, agentTokenBody()));
    expectInvalidToken(await service.send('GET', `${INFO}?access_token=${customerToken}`));
  });

  it('is valid although the body or the query contains an access_token, which is ignored', async () => {
    const body = agentTokenBody({ access_token: 'damaged' });
    const response = await service.post(`${TOKEN}?access_token=damaged`, body, bearer(agentToken));
    expect(response.status).toBe(200);
  });
});

describe('protocol §4.3: an agent token without the required scope', () => {
  it.each([undefined, '', 'agents:read', 'customers:own:all', 'CUSTOMERS:OWN'])(
    'gets 403 with the name of the scope: %j',
    async (scope) => {
      const before = await identitiesOf(service).count();
      const response = await asAgent(issue({ scope }));
      expectError(response, { status: 403, error: 'insufficient_scope', hint: /^scope: customers:own / });
      expect(response.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="customers:own"');
      expect(await identitiesOf(service).count()).toBe(before);
    },
  );

  it('is accepted if it has the scope among others', async () => {
    expect((await asAgent(issue({ scope: 'agents:read customers:own' }))).status).toBe(200);
  });
});

describe('protocol §2.6: a Personal Access Token', () => {
  const basic = () => ({ authorization: `Basic ${Buffer.from(`agent:${agentToken}`).toString('base64')}` });

  it('is never accepted as Basic credentials, also if the request has a valid bearer token elsewhere', async () => {
    const cookie = `__svc_cid=x; __svc_cst=y; access_token=${agentToken}`;
    const body = agentTokenBody({ access_token: agentToken, bearer_type: 'agent' });
    expectInvalidToken(await service.post(TOKEN, body, basic()));
    expectInvalidToken(await service.post(`${TOKEN}?access_token=${agentToken}`, body, { ...basic(), cookie }));
    expectInvalidToken(await service.post('/customer/', body, basic()));
    expectInvalidToken(await service.send('GET', INFO, basic()));
    expectInvalidToken(await service.send('DELETE', '/v2/token', basic()));
  });

  it.each(['dev:3f2c9a', 'pat_0123456789abcdef0123456789abcdef'])(
    'is never accepted as a bearer token: %s',
    async (token) => {
      expectInvalidToken(await asAgent(token));
    },
  );
});

describe('protocol §2.6: an invalid token', () => {
  it('with %3A in it is refused until the client replaces it by a colon', async () => {
    const percentEncoded = agentToken.replace(':', '%3A');
    expectInvalidToken(await asAgent(percentEncoded));
    expectInvalidToken(await asAgent(percentEncoded.replace('%3A', '%3a')));
    expect((await asAgent(decodeURIComponent(percentEncoded))).status).toBe(200);
  });

  it.each<[string, (token: string) => string]>([
    ['without its region', (token) => token.replace('dev:', '')],
    ['of another region', (token) => token.replace('dev:', 'eu:')],
    ['whose region is in upper case', (token) => token.replace('dev:', 'DEV:')],
    ['truncated by a character', (token) => token.slice(0, -1)],
    ['truncated by a segment', (token) => token.slice(0, token.lastIndexOf('.'))],
    ['without a signature', (token) => token.slice(0, token.lastIndexOf('.') + 1)],
    ['extended by a character', (token) => `${token}A`],
    ['extended by a segment', (token) => `${token}.e30`],
    ['with padding', (token) => `${token}==`],
    ['with another organization', (token) => withClaims(token, { organization_id: RIVAL })],
    ['with the other audience', (token) => withClaims(token, { aud: otherAudience(token) })],
    ['in lower case', (token) => token.toLowerCase()],
    ['with another encoding of the same signature', reencodedSignature],
    ['with another spelling of the same payload', (token) => rewritten(token, 1, (text) => `${text} `)],
    ['with another spelling of the same header', (token) => rewritten(token, 0, (text) => `${text} `)],
    ['with alg none', (token) => unsigned(token, 'none')],
    ['with alg None', (token) => unsigned(token, 'None')],
  ])('is refused: %s', async (_, damage) => {
    const damaged = damage(agentToken);
    expect(damaged).not.toBe(agentToken);
    expectInvalidToken(await asAgent(damaged));
    expectInvalidToken(await asCustomer(damage(customerToken)));
  });

  it.each<[string, object, object]>([
    ['of another type', { typ: 'JWT' }, {}],
    ['without a type', { typ: undefined }, {}],
    ['with an embedded key', { jwk: { kty: 'EC' } }, {}],
    ['with a critical extension', { crit: ['b64'], b64: false }, {}],
    ['of an unknown key', { kid: 'nobody' }, {}],
    ['of a key id that is a path', { kid: '../../../dev/null' }, {}],
    ['of another issuer', {}, { iss: 'https://auth.example/' }],
    ['without an issuer', {}, { iss: undefined }],
    ['without an expiry', {}, { exp: undefined }],
    ['whose expiry is a text', {}, { exp: '9999999999x' }],
  ])('is refused although its signature is valid: %s', async (_, header, claims) => {
    expect((await asAgent(forge({}, {}))).status).toBe(200);
    expectInvalidToken(await asAgent(forge(header, claims)));
  });

  it('is refused if another key signed it', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expectInvalidToken(await asAgent(forge({}, {}, privateKey)));
  });
});

describe('the lifetime of a token', () => {
  it('ends with its last second, without any tolerance', async () => {
    const token = issue();
    const expires = claimsOf(token).exp as number;
    await at(expires - 1, async () => expect((await asAgent(token)).status).toBe(200));
    await at(expires, async () => expectInvalidToken(await asAgent(token)));
  });

  it('may begin up to 30 s in the future, because the clock of the issuing process may be ahead', async () => {
    const token = issue();
    const issued = claimsOf(token).iat as number;
    await at(issued - 30, async () => expect((await asAgent(token)).status).toBe(200));
    await at(issued - 31, async () => expectInvalidToken(await asAgent(token)));
  });
});

describe('a revoked token', () => {
  it.each([
    ['its jti', 'jti', 'jti'],
    ['its refresh family', 'family', 'jti'],
    ['its client', 'client', 'client_id'],
  ] as const)('is refused at once if %s is on the denylist', async (_, kind, claim) => {
    const token = issue({ client_id: `client of ${kind}` });
    expect((await asAgent(token)).status).toBe(200);
    await revoke(kind, claimsOf(token)[claim]);
    expectInvalidToken(await asAgent(token));
    expect((await asAgent(agentToken)).status).toBe(200);
  });

  it('is refused if its agent no longer exists', async () => {
    expectInvalidToken(await asAgent(issue({ sub: randomUUID() })));
  });

  it('is an agent token after DELETE /v2/token, at once and for all of its uses', async () => {
    const token = await issueAgentToken(service);
    const response = await service.send('DELETE', '/v2/token', bearer(token));
    expect(response).toMatchObject({ status: 200, body: {} });
    expectInvalidToken(await asAgent(token));
    expectInvalidToken(await service.send('DELETE', '/v2/token', bearer(token)));
    expect((await asAgent(agentToken)).status).toBe(200);
  });
});

function asAgent(token: string): Promise<TestResponse> {
  return service.post(TOKEN, agentTokenBody(), bearer(token));
}

function asCustomer(token: string): Promise<TestResponse> {
  return request(service.url + INFO, { headers: bearer(token) });
}

function expectInvalidToken(response: TestResponse): void {
  expectError(response, { status: 401, error: 'invalid_token', description: 'Invalid access token', hint: undefined });
  expect(response.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
}

function agentId(): string {
  return claimsOf(agentToken).sub as string;
}

/** A signed token with any claims. A claim that is `undefined` is left out. */
function issue(more: Record<string, unknown> = {}): string {
  const claims = { sub: agentId(), aud: 'agent-api', client_id: ACME_SITE, organization_id: ACME };
  const claimsAndScope = { scope: 'customers:own', ...claims, ...more };
  return service.application.get(AccessTokens).issue(claimsAndScope as unknown as IssuableClaims, TTL_SECONDS);
}

/** Builds the token by hand, so that the header can be invalid too. */
function forge(header: object, claims: object, key?: KeyObject): string {
  const { privateKey, publicJwk } = service.application.get(SigningKeys).current();
  const head = { typ: 'at+jwt', alg: 'ES256', kid: publicJwk.kid, ...header };
  const signed = [head, { ...claimsOf(agentToken), ...claims }].map(segment).join('.');
  const signature = sign('sha256', Buffer.from(signed), { key: key ?? privateKey, dsaEncoding: 'ieee-p1363' });
  return `dev:${signed}.${signature.toString('base64url')}`;
}

function segment(value: object | string): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
}

/** Rewrites one segment of the token and keeps the signature. */
function rewritten(token: string, index: 0 | 1, write: (text: string) => string): string {
  const segments = token.slice('dev:'.length).split('.');
  segments[index] = segment(write(Buffer.from(segments[index] as string, 'base64url').toString()));
  return `dev:${segments.join('.')}`;
}

function withClaims(token: string, claims: object): string {
  return rewritten(token, 1, (text) => JSON.stringify({ ...JSON.parse(text), ...claims }));
}

function otherAudience(token: string): string {
  return claimsOf(token).aud === 'agent-api' ? 'customer-api' : 'agent-api';
}

function unsigned(token: string, alg: string): string {
  const rewrite = rewritten(token, 0, (text) => JSON.stringify({ ...JSON.parse(text), alg }));
  return rewrite.slice(0, rewrite.lastIndexOf('.') + 1);
}

/** Changes the last characters without changing the bytes: base64url has unused bits after 64 bytes. */
function reencodedSignature(token: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return token.slice(0, -1) + alphabet[alphabet.indexOf(token.slice(-1)) + 1];
}

/** Runs `act` at a moment in seconds since 1970. */
async function at(seconds: number, act: () => Promise<void>): Promise<void> {
  vi.spyOn(service.clock, 'now').mockReturnValue(seconds * 1000);
  try {
    await act();
  } finally {
    vi.restoreAllMocks();
  }
}

async function revoke(kind: Revocation['kind'], value: unknown): Promise<void> {
  const issuedBefore = new Date(service.clock.now());
  const row = {
    kind,
    value: String(value),
    issuedBefore,
    expiresAt: new Date(service.clock.now() + TTL_SECONDS * 1000),
  };
  await service.application.get(DataSource).getRepository(Revocation).insert(row);
}
