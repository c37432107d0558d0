import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { TOKEN } from '../support/cookie-grant.js';
import { RawConnection } from '../support/raw-http.js';
import { startTestService } from '../support/test-service.js';

/** How long a stop waits for requests. */
const DRAIN_MS = 5_000;
/** The process ends 9.5 s after SIGTERM at the latest, and serves for 2 s of them. */
const MAX_STOP_MS = 7_500;

it('a service that stops waits for the slow requests of both ports at the same time', async () => {
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
  const startMs = performance.now();
  await service.stop();
  const stopMs = performance.now() - startMs;
  expect(stopMs).toBeGreaterThan(DRAIN_MS - 100);
  expect(stopMs).toBeLessThan(MAX_STOP_MS);
});
