import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { JWT_BEARER } from '../../../test/support/assertion-issuer.js';
import { expectInvalidRequest } from '../../../test/support/expect-error.js';
import { plainRequest } from '../../../test/support/raw-http.js';
import { useService } from '../../../test/support/use-service.js';
import { DEMO, demoEntries } from '../src/demo-registry.js';
import { TryItModule } from '../src/try-it.module.js';

const BACKEND = '/try/backend/customer';
const ASSERTION = '/try/assertion';

const service = useService(() => {
  const registry = demoEntries('https://auth.example');
  return { registry, modules: [TryItModule], environment: { TRY_IT: 'true' } };
});

describe('protocol §11: the demo backend', () => {
  const ask = (external_id: unknown, headers: Record<string, string> = { origin: service.url }) =>
    service.post(BACKEND, { external_id }, headers);

  it('creates the customer of a user once, by a real request', async () => {
    const first = (await ask('user-1')).body;
    expect(first.request).toMatchObject({
      ...{ method: 'POST', url: '/v2/customer/token' },
      body: { grant_type: 'agent_token', client_id: DEMO.serverClientId, external_id: 'user-1' },
    });
    expect(first.response).toMatchObject({ status: 200, body: { created: true, token_type: 'Bearer' } });
    const { response } = (await ask('user-1')).body;
    expect(response.body).toMatchObject({ created: false, entity_id: first.response.body.entity_id });
    expect(response.headers).toHaveProperty('x-request-id');
  });

  it('shows the claims of the agent token, but never the token', async () => {
    const { text, body } = await ask('user-2');
    expect(body.agentTokenClaims).toMatchObject({ aud: 'agent-api', scope: 'customers:own' });
    const tokens = text.match(/dev:[\w-]+\.[\w-]+\.[\w-]+/g) ?? [];
    expect(tokens).toEqual([body.response.body.access_token]);
    const [, payload = ''] = String(tokens[0]).split('.');
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString()).aud).toBe('customer-api');
  });

  it('signs an assertion about a user, with which the page signs its browser in', async () => {
    const { assertion } = (await service.post(ASSERTION, { external_id: 'user-5' }, { origin: service.url })).body;
    const page = { client_id: DEMO.clientId, organization_id: DEMO.organizationId, assertion };
    const signIn = { grant_type: JWT_BEARER, ...page, remember: 'browser', link: 'browser' };
    const { status, body, cookies } = await service.post('/v2/customer/token', signIn, {
      origin: 'https://auth.example',
    });
    expect({ status, cookies }).toMatchObject({ status: 200, cookies: { length: 2 } });
    expect((await ask('user-5')).body.response.body.entity_id).toBe(body.entity_id);
  });

  it('signs no assertion for a page of another origin', async () => {
    const response = await service.post(ASSERTION, { external_id: 'user-5' }, { origin: 'http://evil.example' });
    expectInvalidRequest(response, 'Origin: must be the origin of the try-it page');
  });

  it.each(['a\u0000b', 'x'.repeat(256)])('shows the error response to the external_id %j', async (id) => {
    const { status, body } = await ask(id);
    expect({ status, of: body.response }).toMatchObject({ status: 200, of: { status: 400 } });
    expect(body.response.body).toMatchObject({
      error: 'invalid_request',
      error_hint: expect.stringMatching(/^external_id: /),
    });
  });

  it.each([
    ['no string', 5],
    ['empty', ''],
    ['too long for any id', 'x'.repeat(1_001)],
    ['an object', { a: 1 }],
  ])('rejects an external_id that is %s', async (_what, id) => expectInvalidRequest(await ask(id), /^external_id: /));

  /** Sends a request with its own `Host` header, in which PORT stands for the port of the service. */
  const askAs = (host: string, origin: string | undefined) => {
    const withPort = (text: string) => text.replace('PORT', new URL(service.url).port);
    const headers = { host: withPort(host), ...(origin !== undefined && { origin: withPort(origin) }) };
    const body = JSON.stringify({ external_id: 'user-3' });
    return plainRequest(service.url + BACKEND, { method: 'POST', headers }, [body]);
  };

  it.each(['localhost', 'localhost:PORT', '127.0.0.1:PORT', '127.9.8.7', '[::1]:PORT', 'LOCALHOST:PORT'])(
    'responds to the loopback host %s and its own origin',
    async (host) => expect((await askAs(host, `http://${host}`)).status).toBe(200),
  );

  it.each([
    ...['auth.example', 'evil.example:PORT', 'localhost.evil.example', '127.0.0.1.evil.example', 'evil.example'],
    ...['192.168.0.1:PORT', '0.0.0.0:PORT', '[::]:PORT', '[fe80::1]', '1270.0.0.1', 'localhost.'],
  ])('rejects the host %s, to which a foreign page could have bound its name', async (host) => {
    const response = await askAs(host, `http://${host}`);
    expectInvalidRequest(response, 'Host: must be a loopback address');
  });

  it.each([
    undefined,
    ...['null', 'http://evil.example', 'http://localhost', 'http://localhost:1', 'http://127.0.0.1:PORT'],
    ...['http://localhost:PORT.evil.example', 'http://localhost:PORT/', 'ftp://localhost:PORT', 'localhost:PORT'],
  ])('rejects the origin %s at localhost', async (origin) => {
    const hint = 'Origin: must be the origin of the try-it page';
    expectInvalidRequest(await askAs('localhost:PORT', origin), hint);
  });

  /** Sends a request over a connection that has this address for the service. */
  const askFrom = async (ip: string | undefined) => {
    const setAddress = (message: unknown) =>
      Object.defineProperty((message as { socket: Socket }).socket, 'remoteAddress', { value: ip });
    subscribe('net.server.socket', setAddress);
    try {
      return await askAs('localhost:PORT', 'http://localhost:PORT');
    } finally {
      unsubscribe('net.server.socket', setAddress);
    }
  };

  it.each(['192.168.0.7', '::ffff:192.168.0.7', 'fe80::1', '::ffff:12.7.0.1', '1127.0.0.1', undefined])(
    'rejects a connection from the address %s, with any headers',
    async (ip) => {
      expectInvalidRequest(await askFrom(ip), 'the demo backend responds to requests of its own machine only');
    },
  );

  it.each(['127.0.0.1', '127.9.8.7', '::1', '::ffff:127.0.0.1'])(
    'responds to a connection from the loopback address %s',
    async (ip) => {
      expect((await askFrom(ip)).status).toBe(200);
    },
  );

  it('allows no other origin to read its responses', async () => {
    const { headers } = await ask('user-4', { origin: service.url });
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect((await service.send('OPTIONS', BACKEND, { origin: 'https://evil.example' })).status).toBe(405);
  });
});
