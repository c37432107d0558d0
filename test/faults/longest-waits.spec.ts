import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { manage } from '../support/management-api.js';
import type { ServiceProcess } from '../support/processes.js';
import { read } from '../support/project-files.js';
import { FaultTestEnvironment } from './faults.js';
import { TOLERANCE_MS } from './history.js';
import { requestsToAllRoutes, type Send } from './requests-to-all-routes.js';

const ADMIN_TOKEN = 'operator-token-of-the-tests-0123456789';

const page = read('docs/operations.md');
const section = page.slice(page.indexOf('## How long a request waits'), page.indexOf('## Upgrading'));

/** The seconds that a route may wait: the first pattern that matches it. The page has each number above 3. */
const LONGEST_WAITS: [RegExp, number][] = [
  [/^GET \/(health|metrics|\.well-known|page\.css|openapi\.json)/, 0],
  [/^\w+ \/v2\/customer\/(token|info|identity_transfer|end_sessions|export|erase)$/, 4],
  [/^(POST \/customer\/|DELETE \/v2\/token)$/, 4],
  [/^POST \/sign-in$/, 5],
  [/^(?!GET)\w+ \/admin\/(?!identities)/, 10],
  [/^(GET|POST) \/oauth2\/(revocations|events)$/, 28],
  [/./, 3],
];
/** The OpenAPI document does not describe it. */
const FILE_OF_PAGES = 'GET /page.css';
const longestWait = (route: string) => LONGEST_WAITS.find(([pattern]) => pattern.test(route))?.[1] ?? 0;

let testEnvironment: FaultTestEnvironment;
let service: ServiceProcess;
let requests: Record<string, Send>;

beforeAll(async () => {
  testEnvironment = await FaultTestEnvironment.build();
  service = await testEnvironment.start({ ADMIN_TOKENS: `operator:all:${ADMIN_TOKEN}` });
  requests = await requestsToAllRoutes({ service, environment: testEnvironment.environment, adminToken: ADMIN_TOKEN });
});
afterAll(() => testEnvironment?.remove());

describe('the longest waits of docs/operations.md', () => {
  it('are on the page, and each route of the OpenAPI document has a request in this test', async () => {
    for (const [, seconds] of LONGEST_WAITS) if (seconds > 3) expect(section).toContain(`| ${seconds} s |`);
    const { paths } = (await manage(service, 'GET', '/openapi.json')).body;
    const routes = Object.entries<object>(paths).flatMap(([path, methods]) =>
      Object.keys(methods)
        .filter((name) => name !== 'servers')
        .map((method) => `${method.toUpperCase()} ${path}`),
    );
    const described = Object.keys(requests).filter((route) => route !== FILE_OF_PAGES);
    expect(described.sort()).toEqual(routes.sort());
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
    const limitMs = (route: string) => longestWait(route) * 1_000 + TOLERANCE_MS;
    expect(results.filter(({ route, waitedMs }) => waitedMs > limitMs(route))).toEqual([]);
    const usesDatabase = (route: string) => longestWait(route) > 0;
    expect(results.filter(({ route, status }) => (status === 503) !== usesDatabase(route))).toEqual([]);
  });
});
