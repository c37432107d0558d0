import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { expect, it, vi } from 'vitest';
import { claimsOf } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { RawConnection, rawRequest } from '../support/raw-http.js';
import { FEED_SECRET, FEED_SERVERS } from '../support/revocation-feed.js';
import { testRegistry } from '../support/test-registry.js';
import { startTestService } from '../support/test-service.js';
import { collectTimers } from '../support/timers.js';
import { newCustomer } from '../support/transfers.js';

/** How long a stop waits for requests. */
const DRAIN_MS = 5_000;

it('a service that stops waits for the slow requests of both ports at the same time, and ends them after 5 s', async () => {
  const service = await startTestService();
  const slow = [
    { url: service.url, path: TOKEN },
    { url: service.managementUrl, path: '/oauth2/revoke' },
  ];
  for (const { url, path } of slow) {
    const connection = await RawConnection.open(url);
    connection.send(`POST ${path} HTTP/1.1\r\nHost: auth.example\r\nContent-Length: 9\r\n\r\n`);
  }
  await sleep(500); // until the service reads the bodies
  const ends = collectTimers(DRAIN_MS);
  const stopped = service.stop();
  await expect.poll(() => ends).toHaveLength(slow.length);
  vi.restoreAllMocks();
  for (const end of ends) end();
  await stopped;
});

/** Sends a request without its last line, which `send('\r\n')` adds. */
async function beginRequest(url: string, start: string, headers: Record<string, string>): Promise<RawConnection> {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return (await RawConnection.open(url)).send(rawRequest(start, '', lines).slice(0, -2));
}

it('a service that stops publishes the revocation of a request under way', async () => {
  const service = await startTestService({ registry: { ...testRegistry(), resource_servers: FEED_SERVERS } });
  const { access_token } = await newCustomer(service);
  const ending = await beginRequest(service.url, `DELETE ${TOKEN}`, bearer(access_token));
  const headers = basic('customer-server', FEED_SECRET);
  const reading = await beginRequest(service.managementUrl, 'GET /oauth2/revocations', headers);
  await sleep(500); // until the service reads the requests
  const stopped = service.stop();
  await sleep(100); // until it closes its ports
  expect((await ending.send('\r\n').response()).status).toBe(200);
  const findPublished = 'SELECT value FROM ended WHERE position IS NOT NULL';
  await expect.poll(() => service.application.get(DataSource).query(findPublished)).toHaveLength(1);
  const { body } = await reading.send('\r\n').response();
  expect(body.revocations).toMatchObject([{ kind: 'session', value: claimsOf(access_token).sid, epoch: 1 }]);
  await stopped;
});
