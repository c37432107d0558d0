import { describe, expect, it } from 'vitest';
import { createEmptyDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { freePort } from '../../scripts/free-port.js';
import { bearer } from '../support/authorization-headers.js';
import { expectError } from '../support/expect-error.js';
import { exchange, rawRequest } from '../support/raw-http.js';
import { request, startTestService } from '../support/test-service.js';
import { ADMIN_TOKEN, serviceOfTest, useService } from '../support/use-service.js';

const OPERATOR = { headers: bearer(ADMIN_TOKEN) };
const NOT_FOUND = { status: 404, error: 'not_found', hint: undefined };
const urlOf = (port: number | undefined, path: string) => `http://127.0.0.1:${port}${path}`;

describe('protocol §1.5: separate ports for administration and metrics', () => {
  const service = useService({ environment: { ADMIN_PORT: '0', METRICS_PORT: '0' } });

  it('METRICS_PORT serves the metrics, which name the port of each request', async () => {
    await request(urlOf(service.adminPort, '/admin/agents'), OPERATOR);
    const { status, text } = await request(urlOf(service.metricsPort, '/metrics'), {});
    expect(status).toBe(200);
    expect(text).toMatch(/http_requests_total\{surface="admin",method="GET",route="\/admin\/agents"/);
  });

  it.each<[name: 'adminPort' | 'metricsPort' | 'managementPort' | 'port', served: string[], others: string[]]>([
    ['adminPort', ['/admin/clients'], ['/metrics', '/health/ready', '/oauth2/introspect', '/openapi.json']],
    ['adminPort', [], ['/../metrics/metrics', '/management/health/ready']],
    ['metricsPort', [], ['/admin/clients', '/health/ready', '/oauth2/introspect', '/openapi.json']],
    ['metricsPort', ['/metrics'], ['/admin/admin/clients']],
    ['managementPort', ['/health/ready', '/openapi.json'], ['/admin/clients', '/admin/identities/x']],
    ['port', [], ['/admin/clients', '/metrics']],
  ])('%s serves %j, and responds 404 to %j', async (name, served, others) => {
    for (const path of served) expect((await request(urlOf(service[name], path), OPERATOR)).status).toBe(200);
    for (const path of others) expectError(await request(urlOf(service[name], path), OPERATOR), NOT_FOUND);
  });

  it('the management port responds 404 to /metrics', async () => {
    expect((await exchange(service.managementUrl, rawRequest('GET /metrics'))).status).toBe(404);
  });
});

describe('protocol §1.5: without separate ports', () => {
  it('the management port serves administration and metrics, and no further port is open', async () => {
    const service = await serviceOfTest({ environment: { ADMIN_TOKEN } });
    for (const path of ['/admin/clients', '/metrics'])
      expect((await request(service.managementUrl + path, OPERATOR)).status).toBe(200);
    expect([service.adminPort, service.metricsPort]).toEqual([undefined, undefined]);
  });
});

describe('protocol §2.2: the metrics of a process that waits for its migrations', () => {
  it.each(['MANAGEMENT_PORT', 'METRICS_PORT'])('can be read on %s', async (name) => {
    const database = await createEmptyDatabase();
    const port = await freePort();
    const starting = startTestService({ database, environment: { MIGRATE_ON_START: 'false', [name]: String(port) } });
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
});
