import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { OutputCapture } from '../../../packages/conformance-kit/src/output-capture.js';
import {
  createTestDatabase,
  onMariadb,
  type TestDatabase,
} from '../../../packages/conformance-kit/src/test-database.js';
import { claimsOf } from '../../support/agent-tokens.js';
import { basic, bearer } from '../../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { expectError, expectInvalidRequest, expectUnavailable } from '../../support/expect-error.js';
import { manage } from '../../support/management-api.js';
import { times } from '../../support/races.js';
import { RawConnection } from '../../support/raw-http.js';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { ACME_BACKEND, ACME_ORIGIN, BACKEND_SECRET, testRegistry } from '../../support/test-registry.js';
import { request, type TestResponse } from '../../support/test-service.js';
import { INFO, infoStatus, redeem, TRANSFER, transferBody } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const SERVER_SECRET = 'the secret of a resource server with enough characters';

describe.runIf(onMariadb)('protocol §2.12: a database outage', () => {
  let database: TestDatabase;
  let proxy: TcpProxy;
  let slow: Promise<TestResponse>;
  let token: string;
  const output = new OutputCapture();
  afterAll(async () => {
    await proxy?.close();
    await database?.remove();
  });
  const service = useService(async () => {
    const registry = testRegistry();
    registry.resource_servers.push({ id: 'chat-api', secret: SERVER_SECRET, audiences: ['customer-api'] });
    database = await createTestDatabase();
    proxy = await startTcpProxy(database.url);
    const environment = { DATABASE_URL: proxy.through(database.url), DB_POOL_SIZE: '2' };
    return { registry, database, environment, log: output.log };
  });
  beforeAll(async () => {
    token = (await service.post(TOKEN, cookieBody({ client_id: ACME_BACKEND }))).body.access_token;
    const connection = await RawConnection.open(service.url);
    connection.send(`POST ${TOKEN} HTTP/1.1\r\nHost: auth.example\r\nX-Slow: `);
    slow = connection.response();
  });
  afterEach(() => proxy.restore());
  const newCustomer = (more: object = {}) => service.post(TOKEN, cookieBody(more), { origin: ACME_ORIGIN });
  const health = (path: string) => request(`${service.managementUrl}/health/${path}`, {});

  /** A request to each route that ends or checks a token, of each kind of caller. */
  const endingsAndChecks = () => {
    const backend = basic(ACME_BACKEND, BACKEND_SECRET);
    const unknownRefreshToken = `dev:${'x'.repeat(22)}.${'x'.repeat(43)}`; // well-formed, so the service asks the database
    return Promise.all([
      manage(service, 'POST', '/oauth2/revoke', backend, { token }),
      manage(service, 'POST', '/oauth2/revoke', backend, { token: unknownRefreshToken }),
      manage(service, 'POST', '/oauth2/introspect', basic('chat-api', SERVER_SECRET), { token }),
      service.admin('POST', '/oauth2/revoke', { token }),
      service.erase(`${claimsOf(token).sub}`),
      service.send('DELETE', TOKEN, bearer(token)),
      service.send('GET', INFO, bearer(token)),
      service.post(TRANSFER, transferBody(), bearer(token)),
      redeem(service, 'dev:x'),
    ]);
  };

  const everythingServes = () =>
    expect.poll(async () => [(await newCustomer()).status, (await health('ready')).status]).toEqual([200, 200]);

  it.each<[string, () => unknown, () => unknown]>([
    ['gone', () => proxy.cut(), () => proxy.restore()],
    ['frozen', () => proxy.freeze(), () => proxy.failOver()],
  ])(
    '(%s) causes temporarily_unavailable, keeps the process alive, ready and with its registry, and ends',
    async (_how, breakDatabase, restoreDatabase) => {
      await everythingServes();
      output.lines.length = 0;
      await times(10, () => newCustomer()); // Each connection of the pool has been used.
      await breakDatabase();
      for (const response of await times(20, () => newCustomer())) {
        expectUnavailable(response);
        expect(response.headers.get('access-control-allow-origin')).toBe(ACME_ORIGIN);
      }
      for (const response of await endingsAndChecks()) expectUnavailable(response);
      expect((await health('ready')).status).toBe(200);
      expect((await health('live')).status).toBe(200);

      await sleep(2_500); // The time includes an attempt to reload the registry.
      expectInvalidRequest(await newCustomer({ client_id: 'nobody' }), /^client_id: unknown/);
      expectInvalidRequest(await newCustomer({ redirect_uri: 'https://acme.example/' }), /^redirect_uri: /);
      expect((await service.send('GET', '/.well-known/jwks.json')).body.keys).toHaveLength(1);
      expectUnavailable(await newCustomer());

      await restoreDatabase();
      await everythingServes();
      expect(await infoStatus(service, token)).toBe(200);
      const lines = output.lines.filter((line) => /"Database","msg":"the database is/.test(line));
      expect(lines, 'one line at the start of the outage, and one at its end').toEqual([
        expect.stringContaining('the database is unavailable, and requests'),
        expect.stringContaining('the database is available again after'),
      ]);
    },
  );

  it('does not prevent a 408 for a header that is never complete', async () => {
    expectError(await slow, { status: 408, error: 'invalid_request', hint: /^HTTP: / });
  });
});
