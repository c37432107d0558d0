import { networkInterfaces } from 'node:os';
import { Controller, Get, Module } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { createEmptyDatabase, onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { freePort } from '../../../scripts/free-port.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { expectError } from '../../support/expect-error.js';
import { exchange, rawRequest } from '../../support/raw-http.js';
import { startTcpProxy } from '../../support/tcp-proxy.js';
import { ACME } from '../../support/test-registry.js';
import { request, startTestService } from '../../support/test-service.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

@Controller('naked')
class NakedController {
  @Get()
  get() {}
}

@Controller('public/naked')
class HandWrittenController {
  @Get()
  get() {}
}

describe('protocol §1.5: two ports', () => {
  const service = useService();

  const NOT_FOUND = { status: 404, error: 'not_found', hint: undefined };
  const MANAGEMENT = ['/health/live', '/health/ready', '/metrics', '/docs'];
  const CLOSED_TO_CALLERS = [
    '/oauth2/introspect',
    '/oauth2/revocations',
    '/oauth2/revoke',
    '/admin/clients',
    '/admin/identities/x',
  ];
  const PUBLIC = [TOKEN, `/v2/customer/${ACME}/support/token`, '/.well-known/jwks.json'];

  it.each([...MANAGEMENT, ...CLOSED_TO_CALLERS])(
    'the public port responds 404 to the management path %s',
    async (path) => {
      for (const method of ['GET', 'POST']) expectError(await request(service.url + path, { method }), NOT_FOUND);
    },
  );

  it.each(PUBLIC)('the management port responds 404 to the public path %s', async (path) => {
    for (const method of ['GET', 'POST'])
      expectError(await request(service.managementUrl + path, { method }), NOT_FOUND);
  });

  it.each(['/.well-known/jwks.json', '/openapi.json'])('the public port serves %s', async (path) => {
    expect((await request(service.url + path, {})).status).toBe(200);
  });

  it.each([...MANAGEMENT, '/openapi.json'])('the management port serves %s', async (path) => {
    expect((await request(service.managementUrl + path, {})).status).toBe(200);
  });

  it.each(['public', 'management'])('no port serves a path below /%s/', async (surface) => {
    for (const path of [...PUBLIC, ...MANAGEMENT, '/', '']) {
      for (const url of [service.url, service.managementUrl]) {
        expectError(await request(`${url}/${surface}${path}`, {}), NOT_FOUND);
      }
    }
  });

  it.each([
    '/../management/health/live',
    '/..%2fmanagement/health/live',
    '/%2e%2e/management/health/live',
    '/x/../../management/health/live',
    '//management/health/live',
    '/\\management/health/live',
    'http://auth.example/../management/health/live',
    'http://auth.example/%2e%2e/management/health/live',
    'http://auth.example\\..\\management\\health\\live',
    'management://health/live',
  ])('no spelling of a path leads to the other surface: %s', async (target) => {
    const { status, text } = await exchange(service.url, rawRequest(`GET ${target}`));
    expect([400, 404]).toContain(status);
    expect(text).not.toContain('"live"');
  });

  it.each([NakedController, HandWrittenController])('%o declares no port and stops the start', async (controller) => {
    @Module({ controllers: [controller] })
    class WithoutPortModule {}
    const message = `${controller.name}: on no port; use @PublicController or @ManagementController instead of @Controller`;
    await expect(startTestService({ modules: [WithoutPortModule] })).rejects.toThrow(message);
  });

  it('the health routes report that the process is live and ready', async () => {
    const live = await request(`${service.managementUrl}/health/live`, {});
    const ready = await request(`${service.managementUrl}/health/ready`, {});
    expect([live.body, ready.body]).toEqual([{ status: 'live' }, { status: 'ready' }]);
  });
});

const hasIpv6 = Object.values(networkInterfaces()).some((each) => each?.some(({ address }) => address === '::1'));

describe.runIf(hasIpv6)('protocol §9.4: HOST', () => {
  it.each([
    ['::1', [false, true]],
    ['127.0.0.1', [true, false]],
    ['', [true, true]],
  ])('with the value %j listens on the expected addresses', async (HOST, [ipv4, ipv6]) => {
    const service = await serviceOfTest({ environment: { HOST } });
    const reaches = async (host: string, port: number, path: string) =>
      (await request(`http://${host}:${port}${path}`, {}).catch(() => undefined))?.status === 200;
    for (const [port, path] of [
      [service.port, '/.well-known/jwks.json'],
      [service.managementPort, '/health/live'],
    ] as const) {
      expect(await reaches('127.0.0.1', port, path)).toBe(ipv4);
      expect(await reaches('[::1]', port, path)).toBe(ipv6);
    }
  });
});

describe.runIf(onMariadb)('protocol §2.2: a process that starts while the database is unreachable', () => {
  it('is live but not ready and has no public port, and serves once the database is reachable', async () => {
    const database = await createEmptyDatabase();
    const proxy = await startTcpProxy(database.url);
    await proxy.cut();
    const MANAGEMENT_PORT = String(await freePort());
    const PORT = String(await freePort());
    const starting = startTestService({
      database,
      environment: { DATABASE_URL: proxy.through(database.url), MANAGEMENT_PORT, PORT },
    });
    const health = (path: string) => request(`http://127.0.0.1:${MANAGEMENT_PORT}/health/${path}`, {});
    try {
      const live = () => health('live').then(({ status }) => status);
      await expect.poll(() => live().catch(() => 'not yet')).toBe(200);
      for (const path of ['ready', 'nowhere']) {
        const response = await health(path);
        expectError(response, { status: 503, error: 'temporarily_unavailable', hint: undefined });
        expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
      }
      expect((await health('live')).headers.get('cache-control')).toBe('no-store');
      await expect(request(`http://127.0.0.1:${PORT}/`, {})).rejects.toThrow();

      await proxy.restore();
      expect((await (await starting).post(TOKEN, cookieBody())).status).toBe(200);
      expect((await health('ready')).status).toBe(200);
    } finally {
      await proxy.restore();
      await (await starting).stop();
      await proxy.close();
      await database.remove();
    }
  });
});
