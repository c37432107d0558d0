import { Get, Module, Res } from '@nestjs/common';
import { type Response } from 'express';
import { describe, expect, it } from 'vitest';
import { ApiRoute } from '../../src/platform/http/api-route.js';
import { PublicController } from '../../src/platform/http/listener.decorators.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError, expectInvalidRequest, MALFORMED } from '../support/expect-error.js';
import { times } from '../support/races.js';
import { exchange, RawConnection, rawRequest } from '../support/raw-http.js';
import { ACME_NO_COOKIES, ACME_ORIGIN } from '../support/test-registry.js';
import { request, type TestResponse } from '../support/test-service.js';
import { useService } from '../support/use-service.js';

const SECRET = 'MARKED-secret-of-the-cause';
const NOT_AUTHORIZED = 'The client is not authorized to request a token using this method';

/** Throws the kinds of unexpected error. */
@PublicController('failing')
class FailingController {
  @Get('error')
  @ApiRoute({ summary: 'Fail' })
  error(@Res({ passthrough: true }) response: Response): never {
    response.setHeader('Set-Cookie', [`one=${SECRET}`, `two=${SECRET}`]);
    throw new Error(SECRET, { cause: new Error(SECRET) });
  }

  @Get('nothing')
  @ApiRoute({ summary: 'Fail' })
  nothing(): never {
    throw undefined;
  }

  @Get('circular')
  @ApiRoute({ summary: 'Fail' })
  circular(): object {
    const response: Record<string, unknown> = { secret: SECRET };
    return Object.assign(response, { answer: response });
  }
}

@Module({ controllers: [FailingController] })
class FailingModule {}

describe('protocol §2.10 and §2.11: responses and errors', () => {
  const service = useService({ modules: [FailingModule] });

  const token = (more: object) => service.post(TOKEN, cookieBody(more));
  const raw = (bytes: string) => exchange(service.url, bytes);

  it.each<[string, () => Promise<TestResponse>, Parameters<typeof expectError>[1]]>([
    [
      'a missing parameter',
      () => token({ response_type: undefined }),
      { status: 400, error: 'invalid_request', description: MALFORMED, hint: 'response_type: required' },
    ],
    [
      'a client that may not use the grant',
      () => token({ client_id: ACME_NO_COOKIES }),
      { status: 400, error: 'unauthorized_client', description: NOT_AUTHORIZED, hint: /^grant_type: / },
    ],
    ['an unknown route', () => service.send('GET', '/nowhere'), { status: 404, error: 'not_found', hint: undefined }],
    ['a wrong method', () => service.send('GET', TOKEN), { status: 405, error: 'method_not_allowed', hint: undefined }],
    ['no HTTP', () => raw('MARKED garbage\r\n\r\n'), { status: 400, error: 'invalid_request', hint: /^HTTP: / }],
    [
      'an invalid header',
      () => raw('GET / HTTP/1.1\r\nHost: auth.example\r\nno colon\r\n\r\n'),
      { status: 400, error: 'invalid_request', hint: /^HTTP: / },
    ],
    [
      'TLS to a port without TLS',
      () => raw('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'),
      { status: 400, error: 'invalid_request', hint: /^HTTP: / },
    ],
    [
      'a URL beyond 16 KiB',
      () => raw(rawRequest(`GET /${'x'.repeat(17_000)}`)),
      { status: 431, error: 'invalid_request', hint: /^HTTP: / },
    ],
  ])(
    'every error has the common shape, in both vocabularies, with the request id of its header, for %s',
    async (_what, send, expected) => expectError(await send(), expected),
  );

  it('a request with an unknown Expect header gets a normal response', async () => {
    const response = await raw(rawRequest(`POST ${TOKEN}`, JSON.stringify(cookieBody()), ['Expect: the-unexpected']));
    expect(response.status).toBe(200);
  });

  it('a hint about an invalid request contains only the parameter and the rule, and not the value', async () => {
    for (const parameter of ['client_id', 'organization_id', 'redirect_uri', 'response_type']) {
      const response = await token({ [parameter]: SECRET });
      expectInvalidRequest(response, new RegExp(`^${parameter}: `));
      expect(response.text).not.toContain('MARKED');
    }
    expect((await raw(rawRequest('GET /MARKED', '', ['MARKED : x']))).text).not.toContain('MARKED');
  });

  it.each(['error', 'nothing', 'circular'])(
    'an unexpected error (%s) causes server_error without any word about its cause, and without the cookies of the handler',
    async (how) => {
      const response = await service.send('GET', `/failing/${how}`);
      expectError(response, { status: 500, error: 'server_error', hint: undefined });
      expect(response.text + JSON.stringify([...response.headers])).not.toContain('MARKED');
    },
  );

  it('each path of both ports responds to any other method with 405 and Allow, with HEAD where GET is served', async () => {
    const { paths } = (await request(`${service.managementUrl}/openapi.json`, {})).body;
    for (const [path, { servers, ...methods }] of Object.entries<{ servers: { url: string }[] }>(paths)) {
      const url = (servers[0]?.url === '/' ? service.managementUrl : service.url) + path.replaceAll(/\{\w+\}/g, 'x');
      const allowed = Object.keys(methods).map((method) => method.toUpperCase());
      if (allowed.includes('GET')) allowed.push('HEAD');
      for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'POST', 'PROPFIND']) {
        if (allowed.includes(method)) continue;
        const response = await request(url, { method });
        if (method !== 'HEAD') expectError(response, { status: 405, error: 'method_not_allowed', hint: undefined });
        const allow = response.headers.get('allow')?.split(', ').sort();
        expect({ path, method, allow }).toEqual({ path, method, allow: allowed.sort() });
      }
    }
  });

  it.each(['/', '//'])('POST %s gets 405, because GET is served at this path', async (path) => {
    expectError(await service.send('POST', path), { status: 405, error: 'method_not_allowed', hint: undefined });
  });

  it('CONNECT gets a common error and is closed, and a reset by the client does not end the process', async () => {
    const connect = 'CONNECT auth.example:443 HTTP/1.1\r\nHost: auth.example\r\n\r\n';
    for (const url of [service.url, service.managementUrl]) {
      expectInvalidRequest(await exchange(url, `${connect}and what would go through it`), /^HTTP: /);
      for (let each = 0; each < 20; each++) (await RawConnection.open(url)).send(connect).abort();
    }
    expect((await service.post(TOKEN, cookieBody())).status).toBe(200);
  });

  it('HEAD gets the response of GET without the body', async () => {
    const { status, text, headers } = await service.send('HEAD', '/.well-known/jwks.json');
    expect({ status, text }).toEqual({ status: 200, text: '' });
    expect(Number(headers.get('content-length'))).toBeGreaterThan(100);
    expect((await service.send('HEAD', TOKEN)).status).toBe(405);
  });

  it.each<[string, () => Promise<TestResponse>]>([
    ['a token', () => token({})],
    ['an unexpected error', () => service.send('GET', '/failing/error')],
    ['a preflight', () => service.send('OPTIONS', TOKEN, { origin: ACME_ORIGIN })],
    ['a health check', () => request(`${service.managementUrl}/health/live`, {})],
    ['a broken request', () => raw('garbage\r\n\r\n')],
  ])('%s is not cached, not sniffed, has a request id, and says nothing about the server', async (_what, send) => {
    const { headers } = await send();
    expect(Object.fromEntries(headers)).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    for (const name of ['x-powered-by', 'server', 'etag', 'last-modified']) expect(headers.get(name)).toBeNull();
  });

  it('the keys may be cached for minutes, and are not sniffed', async () => {
    const { headers } = await service.send('GET', '/.well-known/jwks.json');
    expect(headers.get('cache-control')).toMatch(/max-age=\d{3}$/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('etag')).toBeNull();
  });

  it.each(['a.b-c_D9', 'x'.repeat(64)])('a well-formed X-Request-Id is in the response: %s', async (id) => {
    for (const body of [{}, { client_id: 'nobody' }]) {
      const response = await service.post(TOKEN, cookieBody(body), { 'x-request-id': id });
      expect(response.headers.get('x-request-id')).toBe(id);
      if (response.status !== 200) expect(response.body.request_id).toBe(id);
    }
  });

  it.each(['1234567', 'x'.repeat(65), 'quote"quote', 'uml\u00e4ut-x'])(
    'a malformed X-Request-Id is replaced in the response: %j',
    async (id) => {
      const response = await service.post(TOKEN, {}, { 'x-request-id': id });
      expectInvalidRequest(response, 'grant_type: required');
      expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    },
  );

  it.each([
    ['the trace id of traceparent', `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`, /^(ab){16}$/],
    ['a UUID if traceparent is malformed', '00-x', /^[0-9a-f-]{36}$/],
  ])('the request id of the response without X-Request-Id is %s', async (_rule, traceparent, id) => {
    const response = await service.send('GET', '/nowhere', { traceparent });
    expect(response.headers.get('x-request-id')).toMatch(id);
  });

  it('no two requests have the same id', async () => {
    const responses = await times(20, () => token({ client_id: 'nobody' }));
    expect(new Set(responses.map(({ body }) => body.request_id)).size).toBe(20);
  });
});
