import { HttpCode, Module, Post, UseGuards } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AccessTokenModule } from '../../../src/access-token/access-token.module.js';
import { AccessTokens, type IssuableClaims } from '../../../src/access-token/access-tokens.js';
import { BearerModule } from '../../../src/bearer/bearer.module.js';
import { BearerAuthGuard } from '../../../src/bearer/bearer.strategy.js';
import { AnyOrigin, ApiRoute, PublicController } from '../../../src/public/grant.js';
import { agentTokenBody, claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { expectInvalidToken } from '../../support/expect-error.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { exchange, rawRequest } from '../../support/raw-http.js';
import { ACME, ACME_SITE, RIVAL } from '../../support/test-registry.js';
import { request, startTestService, type TestResponse, type TestService } from '../../support/test-service.js';
import { serviceOfTest } from '../../support/use-service.js';

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
    const other = await serviceOfTest();
    expect(await asAgent(agentToken)).toMatchObject({ status: 200 });
    expectInvalidToken(await other.post(TOKEN, agentTokenBody(), bearer(agentToken)));
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
    ['truncated by a character', (token) => token.slice(0, -1)],
    ['extended by a character', (token) => `${token}A`],
    ['with another organization', (token) => withClaims(token, { organization_id: RIVAL })],
    ['with the other audience', (token) => withClaims(token, { aud: otherAudience(token) })],
    ['with alg none', (token) => unsigned(token)],
  ])('is refused: %s', async (_, damage) => {
    const damaged = damage(agentToken);
    expect(damaged).not.toBe(agentToken);
    expectInvalidToken(await asAgent(damaged));
    expectInvalidToken(await asCustomer(damage(customerToken)));
  });
});

function asAgent(token: string): Promise<TestResponse> {
  return service.post(TOKEN, agentTokenBody(), bearer(token));
}

function asCustomer(token: string): Promise<TestResponse> {
  return request(service.url + INFO, { headers: bearer(token) });
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

/** Rewrites one segment of the token and keeps the signature. */
function rewritten(token: string, index: 0 | 1, write: (text: string) => string): string {
  const segments = token.slice('dev:'.length).split('.');
  const text = write(Buffer.from(segments[index] as string, 'base64url').toString());
  segments[index] = Buffer.from(text).toString('base64url');
  return `dev:${segments.join('.')}`;
}

function withClaims(token: string, claims: object): string {
  return rewritten(token, 1, (text) => JSON.stringify({ ...JSON.parse(text), ...claims }));
}

function otherAudience(token: string): string {
  return claimsOf(token).aud === 'agent-api' ? 'customer-api' : 'agent-api';
}

function unsigned(token: string): string {
  const rewrite = rewritten(token, 0, (text) => JSON.stringify({ ...JSON.parse(text), alg: 'none' }));
  return rewrite.slice(0, rewrite.lastIndexOf('.') + 1);
}
