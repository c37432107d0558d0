import { describe, expect, it } from 'vitest';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectInvalidRequest } from '../support/expect-error.js';
import { ACME, ACME_ORIGIN, PUBLIC_ORIGIN, RIVAL_ORIGIN } from '../support/test-registry.js';
import { request, type TestResponse } from '../support/test-service.js';
import { useService } from '../support/use-service.js';

const GROUP = `/v2/customer/${ACME}/support/token`;
const WITH_COOKIES = [TOKEN, `${TOKEN}/`, GROUP, `${GROUP}/`];
/** Routes of customers that read cookies, and give no token. */
const ENDINGS = ['/v2/customer/forget', '/v2/customer/end_sessions'];
const WITHOUT_COOKIES = ['/v2/customer/identity_transfer', '/v2/customer/info', '/customer/'];
const KNOWN = [ACME_ORIGIN, RIVAL_ORIGIN, PUBLIC_ORIGIN, 'capacitor://localhost'];
const UNKNOWN = [
  'null',
  'https://evil.example',
  'http://acme.example',
  'https://acme.example:443',
  'https://acme.example.evil.example',
  'https://ACME.example',
  'https://acme.example, https://evil.example',
];

describe('protocol §2.9: CORS', () => {
  const service = useService();

  const preflight = (path: string, origin: string, method = 'POST') =>
    service.send('OPTIONS', path, {
      origin,
      'access-control-request-method': method,
      'access-control-request-headers': 'content-type,authorization',
    });
  const corsOf = ({ headers }: TestResponse) =>
    Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')));
  const allowed = (origin: string, credentials: boolean) => ({
    'access-control-allow-origin': origin,
    ...(credentials && { 'access-control-allow-credentials': 'true' }),
  });
  const readable = (origin: string, credentials: boolean) => ({
    ...allowed(origin, credentials),
    'access-control-expose-headers': 'X-Request-Id, Retry-After',
  });

  it.each(WITH_COOKIES)('allows the origin of the client to read the response with credentials at %s', async (path) => {
    const response = await service.post(path, cookieBody(), { origin: ACME_ORIGIN });
    expect(response.status).toBe(200);
    expect(corsOf(response)).toEqual(readable(ACME_ORIGIN, true));
    expect(response.headers.get('vary')).toBe('Origin');
  });

  it.each(KNOWN)('allows a registered origin to read error responses, as exactly that origin: %s', async (origin) => {
    for (const [path, credentials] of [
      [TOKEN, true],
      [GROUP, true],
      ...ENDINGS.map((path) => [path, true] as const),
      ['/v2/customer/nowhere', false],
    ] as const) {
      const response = await service.post(path, { grant_type: 'unknown' }, { origin });
      expect(response.status).toBeGreaterThanOrEqual(400);
      expect(corsOf(response)).toEqual(readable(origin, credentials));
      expect(response.headers.get('vary')).toBe('Origin');
    }
  });

  it.each<[number, (headers: Record<string, string>) => Promise<TestResponse>]>([
    [400, (headers) => service.post(TOKEN, 'no JSON', headers)],
    [404, (headers) => service.post('/v2/customer/nowhere', {}, headers)],
    [413, (headers) => service.post(TOKEN, 'x'.repeat(20_000), headers)],
    [415, (headers) => service.post(TOKEN, '{}', { ...headers, 'content-encoding': 'gzip' })],
  ])('allows a registered origin to read an error %i of any layer', async (status, send) => {
    const response = await send({ origin: ACME_ORIGIN });
    expect(response.status).toBe(status);
    expect(response.headers.get('access-control-allow-origin')).toBe(ACME_ORIGIN);
    expect(response.headers.get('access-control-expose-headers')).toBe('X-Request-Id, Retry-After');
    expect(response.headers.get('vary')).toBe('Origin');
  });

  it('allows the origin of another client to read the error response, and gives it no token', async () => {
    const response = await service.post(TOKEN, cookieBody(), { origin: RIVAL_ORIGIN });
    expectInvalidRequest(response, /^Origin: /);
    expect(corsOf(response)).toEqual(readable(RIVAL_ORIGIN, true));
  });

  it.each(UNKNOWN)('allows no other origin to read anything: %s', async (origin) => {
    for (const response of [
      await service.post(TOKEN, cookieBody(), { origin }),
      await service.post(TOKEN, cookieBody()),
      await preflight(TOKEN, origin),
    ]) {
      expect(corsOf(response)).toEqual({});
      expect(response.headers.get('vary')).toBe('Origin');
    }
  });

  it.each([
    ...[...WITH_COOKIES, ...ENDINGS].map((path) => [path, true] as const),
    ...WITHOUT_COOKIES.map((path) => [path, false] as const),
  ])('allows the methods and headers in a preflight at %s; credentials: %s', async (path, credentials) => {
    for (const method of ['POST', 'GET', 'DELETE']) {
      const response = await preflight(path, ACME_ORIGIN, method);
      expect(response.status).toBe(204);
      expect(corsOf(response)).toMatchObject(allowed(ACME_ORIGIN, credentials));
      expect(response.headers.has('access-control-allow-credentials')).toBe(credentials);
      const list = (name: string) => response.headers.get(name)?.split(/, */).sort();
      expect(list('access-control-allow-methods')).toEqual(['DELETE', 'GET', 'POST']);
      expect(list('access-control-allow-headers')).toEqual(['authorization', 'content-type']);
      expect(response.headers.get('vary')).toBe('Origin');
    }
  });

  it.each(['/.well-known/jwks.json', '/.well-known/oauth-authorization-server'])(
    'allows every origin to read %s, without credentials',
    async (path) => {
      for (const method of ['GET', 'HEAD']) {
        const response = await service.send(method, path, { origin: 'https://anybody.example' });
        expect(response.status).toBe(200);
        expect(corsOf(response)).toEqual({ 'access-control-allow-origin': '*' });
      }
    },
  );

  it.each(['/', '/sign-in', '/consent', '/sign-out', '/v2/token', '/nowhere'])(
    'allows no origin at a page or at another route: %s',
    async (path) => {
      for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE']) {
        expect(corsOf(await service.send(method, path, { origin: ACME_ORIGIN }))).toEqual({});
      }
      const health = await request(`${service.managementUrl}/health/live`, { headers: { origin: ACME_ORIGIN } });
      expect(corsOf(health)).toEqual({});
    },
  );
});
