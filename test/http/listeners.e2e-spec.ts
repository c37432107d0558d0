import { networkInterfaces } from 'node:os';
import { Controller, Get, Module, Param } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { createEmptyDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { freePort } from '../../scripts/free-port.js';
import { ApiRoute } from '../../src/platform/http/api-route.js';
import { PublicController } from '../../src/platform/http/listener.decorators.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { exchange, rawRequest } from '../support/raw-http.js';
import { ACME } from '../support/test-registry.js';
import { request, startTestService } from '../support/test-service.js';
import { ADMIN_TOKEN, serviceOfTest, useService } from '../support/use-service.js';

const OPERATOR = { headers: bearer(ADMIN_TOKEN) };
const NOT_FOUND = { status: 404, error: 'not_found', hint: undefined };
const urlOf = (port: number | undefined, path: string) => `http://127.0.0.1:${port}${path}`;

@Controller('public/naked')
class NakedController {
  @Get()
  get() {}
}

@PublicController(':word')
class WordController {
  @Get()
  @ApiRoute({ summary: 'Repeat a word', response: '*/*' })
  get(@Param('word') word: string) {
    return { word };
  }
}

describe('protocol §1.5: two ports', () => {
  const service = useService();

  const MANAGEMENT = ['/health/live', '/health/ready', '/metrics'];
  const CLOSED_TO_CALLERS = [
    '/oauth2/events',
    '/oauth2/introspect',
    '/oauth2/revocations',
    '/oauth2/revoke',
    '/admin/clients',
    '/admin/customers/x',
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
    const { status, body } = await request(service.managementUrl + path, {});
    expect(status).toBe(200);
    if (path.startsWith('/health/')) expect(body).toMatchObject({ status: path.slice('/health/'.length) });
  });

  it.each(['public', 'management'])('no port serves a path below /%s/', async (listener) => {
    for (const path of [...PUBLIC, ...MANAGEMENT, '/', '']) {
      for (const url of [service.url, service.managementUrl]) {
        expectError(await request(`${url}/${listener}${path}`, {}), NOT_FOUND);
      }
    }
  });

  it.each([
    '/%2e%2e/health/live',
    '/x/../health/live',
    '//health/live',
    'http://management/health/live',
    'http://auth.example\\health\\live',
    'management://health/live',
  ])('no spelling of a path leads to the other listener: %s', async (target) => {
    const { status, text } = await exchange(service.url, rawRequest(`GET ${target}`));
    expect([400, 404]).toContain(status);
    expect(text).not.toContain('"live"');
  });

  it('a public route with a parameter hides no route of the management port', async () => {
    @Module({ controllers: [WordController] })
    class WordModule {}
    const service = await serviceOfTest({ modules: [WordModule] });
    expect((await request(`${service.url}/metrics`, {})).body).toEqual({ word: 'metrics' });
    expect((await request(`${service.managementUrl}/metrics`, {})).text).toContain('process_start_time_seconds');
    expectError(await request(`${service.managementUrl}/word`, {}), NOT_FOUND);
  });

  it('a controller that declares no port stops the start', async () => {
    @Module({ controllers: [NakedController] })
    class WithoutPortModule {}
    const message =
      'NakedController: on no port; use @PublicController or @ManagementController instead of @Controller';
    await expect(startTestService({ modules: [WithoutPortModule] })).rejects.toThrow(message);
  });
});

const hasIpv6 = Object.values(networkInterfaces()).some((each) => each?.some(({ address }) => address === '::1'));

it.runIf(hasIpv6).each([
  ['::1', [false, true]],
  ['127.0.0.1', [true, false]],
  ['', [true, true]],
])('protocol §9.4: HOST with the value %j listens on the expected addresses', async (HOST, [ipv4, ipv6]) => {
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

describe('protocol §1.5: a separate port for administration', () => {
  const service = useService({ environment: { ADMIN_PORT: '0' } });

  it('is named by the metrics of its requests', async () => {
    await request(urlOf(service.adminPort, '/admin/agents'), OPERATOR);
    const { text } = await request(`${service.managementUrl}/metrics`, {});
    expect(text).toMatch(/http_requests_total\{surface="admin",method="GET",route="\/admin\/agents"/);
  });

  it.each<[name: 'adminPort' | 'managementPort' | 'port', served: string[], others: string[]]>([
    ['adminPort', ['/admin/clients'], ['/metrics', '/health/ready', '/oauth2/introspect', '/openapi.json']],
    ['adminPort', [], ['/../metrics', '/management/health/ready', '/admin/admin/clients']],
    ['managementPort', ['/health/ready', '/openapi.json', '/metrics'], ['/admin/clients', '/admin/customers/x']],
    ['port', [], ['/admin/clients', '/metrics']],
  ])('%s serves %j, and responds 404 to %j', async (name, served, others) => {
    for (const path of served) expect((await request(urlOf(service[name], path), OPERATOR)).status).toBe(200);
    for (const path of others) expectError(await request(urlOf(service[name], path), OPERATOR), NOT_FOUND);
  });
});

it('protocol §1.5: without ADMIN_PORT, the management port serves administration and metrics, and no further port is open', async () => {
  const service = await serviceOfTest();
  for (const path of ['/admin/clients', '/metrics'])
    expect((await request(service.managementUrl + path, OPERATOR)).status).toBe(200);
  expect(service.adminPort).toBeUndefined();
});

it('protocol §2.2: the metrics of a process that waits for its migrations can be read', async () => {
  const database = await createEmptyDatabase();
  const port = await freePort();
  const starting = startTestService({
    database,
    environment: { MIGRATE_ON_START: 'false', MANAGEMENT_PORT: String(port) },
  });
  const scrape = () => request(urlOf(port, '/metrics'), {});
  const statusOf = () =>
    scrape()
      .then(({ status }) => status)
      .catch(() => 0);
  try {
    await expect.poll(statusOf).toBe(200);
    const { text, headers } = await scrape();
    expect(headers.get('content-type')).toContain('text/plain; version=0.0.4');
    expect(text).toMatch(/^process_start_time_seconds \d/m);
    expect(text).toMatch(/^http_requests_total\{[^}]*route="\/metrics"[^}]*status="200"\} \d+$/m);
    expect(text).not.toContain('cas_registry_age_seconds');
  } finally {
    await (await startTestService({ database })).stop();
    await (await starting).stop();
    await database.remove();
  }
});
