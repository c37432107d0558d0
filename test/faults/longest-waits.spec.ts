import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { manage } from '../support/management-api.js';
import type { ServiceProcess } from '../support/processes.js';
import { FaultTestEnvironment } from './faults.js';
import { requestsToAllRoutes, type Send } from './requests-to-all-routes.js';

const ADMIN_TOKEN = 'operator-token-of-the-tests-0123456789';
/** The additional time for the process on a machine with two cores that also runs the test. */
const TOLERANCE_MS = 1_000;

const page = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8');
const section = page.slice(page.indexOf('## How long a request waits'), page.indexOf('## Upgrading'));

/** The longest wait of each route in milliseconds, from the page. */
const waitsMs = new Map(
  Array.from(section.matchAll(/^\| (`.*`) \| (\d+) s \|/gm)).flatMap(([, routes = '', seconds]) =>
    Array.from(routes.matchAll(/`([^`]+)`/g), ([, route = '']) => [route, Number(seconds) * 1_000] as const),
  ),
);

let testEnvironment: FaultTestEnvironment;
let service: ServiceProcess;
let requests: Record<string, Send>;

beforeAll(async () => {
  testEnvironment = await FaultTestEnvironment.build();
  service = await testEnvironment.start({ ADMIN_TOKEN });
  requests = await requestsToAllRoutes({ service, environment: testEnvironment.environment, adminToken: ADMIN_TOKEN });
});
afterAll(() => testEnvironment?.remove());

describe('the longest waits of docs/operations.md', () => {
  it('are listed for every route of the OpenAPI document, and each route has a request in this test', async () => {
    const { paths } = (await manage(service, 'GET', '/openapi.json')).body;
    const routes = Object.entries<object>(paths).flatMap(([path, methods]) =>
      Object.keys(methods)
        .filter((name) => name !== 'servers')
        .map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect([...waitsMs.keys()].sort()).toEqual(routes.sort());
    expect(Object.keys(requests).sort()).toEqual(routes);
  });

  it('hold while the database is frozen and all routes are called at once', async () => {
    process.kill(testEnvironment.mariadb.pid(), 'SIGSTOP');
    const results = await Promise.all(
      Object.entries(requests).map(async ([route, send]) => {
        const startedAt = performance.now();
        const { status } = await send();
        return { route, status, waitedMs: Math.round(performance.now() - startedAt) };
      }),
    ).finally(() => process.kill(testEnvironment.mariadb.pid(), 'SIGCONT'));
    process.stdout.write(
      `${results.map(({ route, status, waitedMs }) => `${route}: ${status}, ${waitedMs} ms`).join('\n')}\n`,
    );
    const limitMs = (route: string) => (waitsMs.get(route) ?? 0) + TOLERANCE_MS;
    expect(results.filter(({ route, waitedMs }) => waitedMs > limitMs(route))).toEqual([]);
    const usesDatabase = (route: string) => waitsMs.get(route) !== 0;
    expect(results.filter(({ route, status }) => (status === 503) !== usesDatabase(route))).toEqual([]);
  });
});
