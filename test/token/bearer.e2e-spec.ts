import { HttpCode, Module, Post, UseGuards } from '@nestjs/common';
import { beforeAll, describe, expect, it } from 'vitest';
import { AccessTokens, type IssuableClaims } from '../../src/access-token/access-tokens.js';
import { BearerAuthGuard } from '../../src/http/callers/bearer.strategy.js';
import { CallersModule } from '../../src/http/callers/callers.module.js';
import { AnyOrigin, ApiRoute, PublicController } from '../../src/public/grant.js';
import { SessionModule } from '../../src/session/session.module.js';
import { agentTokenBody, claimsOf } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectInvalidToken } from '../support/expect-error.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { exchange, rawRequest } from '../support/raw-http.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';
import { request, type TestResponse } from '../support/test-service.js';
import { serviceOfTest, useService } from '../support/use-service.js';

const INFO = '/v2/customer/info';
const TTL_SECONDS = 28_800;

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

@Module({ imports: [SessionModule, CallersModule], controllers: [GuardedController] })
class GuardedModule {}

const service = useService({ modules: [GuardedModule] });
beforeAll(async () => {
  agentToken = await issueAgentToken(service);
  customerToken = (await service.post(TOKEN, cookieBody())).body.access_token;
});

describe('protocol §3.1: the two kinds of token', () => {
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
      const { sub, gen } = claimsOf(customerToken);
      expect((await asCustomer(issue({ sub, gen, scope: undefined, aud: 'customer-api' }))).status).toBe(200);
      expectInvalidToken(await asCustomer(issue({ sub, gen, scope: undefined, aud })));
    },
  );
});

describe('protocol §2.6: a bearer token', () => {
  it.each(['Bearer', 'bearer'])('may be sent with the scheme %s (RFC 9110 §11.1)', async (scheme) => {
    const response = await service.post(TOKEN, agentTokenBody(), { authorization: `${scheme} ${agentToken}` });
    expect(response.status).toBe(200);
  });

  it.each([
    ['no header', () => ({})],
    ['no token', () => ({ authorization: 'Bearer' })],
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

  it('is accepted with a header __proto__, at which a getter of some versions of Node throws', async () => {
    const headers = [`Authorization: Bearer ${customerToken}`, '__proto__: x'];
    expect((await exchange(service.url, rawRequest(`GET ${INFO}`, '', headers))).status).toBe(200);
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
});

const basic = () => ({ authorization: `Basic ${Buffer.from(`agent:${agentToken}`).toString('base64')}` });

it('protocol §2.6: a Personal Access Token is never accepted as Basic credentials, also if the request has a valid bearer token elsewhere', async () => {
  const cookie = `__svc_cid=x; __svc_cst=y; access_token=${agentToken}`;
  const body = agentTokenBody({ access_token: agentToken, bearer_type: 'agent' });
  expectInvalidToken(await service.post(TOKEN, body, basic()));
  expectInvalidToken(await service.post(`${TOKEN}?access_token=${agentToken}`, body, { ...basic(), cookie }));
  expectInvalidToken(await service.post('/customer/', body, basic()));
  expectInvalidToken(await service.send('GET', INFO, basic()));
  expectInvalidToken(await service.send('DELETE', '/v2/token', basic()));
});

it('protocol §2.6: a token with %3A is refused until the client replaces it by a colon', async () => {
  const percentEncoded = agentToken.replace(':', '%3A');
  expectInvalidToken(await asAgent(percentEncoded));
  expectInvalidToken(await asAgent(percentEncoded.replace('%3A', '%3a')));
  expect((await asAgent(decodeURIComponent(percentEncoded))).status).toBe(200);
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
