import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { identitiesOf } from '../support/identities.js';
import { parseResponses, RawConnection } from '../support/raw-http.js';
import { isDestroyedByService } from '../support/server-sockets.js';
import { type TestService } from '../support/test-service.js';
import { newCustomer } from '../support/transfers.js';
import { serviceOfTest } from '../support/use-service.js';

const SILENT_CONNECTION_COUNT = 1_000;
const REQUEST_TIMEOUT_MS = 20_000;
/** Many more than a body gets while it arrives for 20 s. */
const BODY_BYTES = 2_000;
const BYTE_INTERVAL_MS = 100;
const TIMER_TOLERANCE_MS = 100;

/** Starts a service for one test. The tests run at the same time, and connections of one test displace others. */
async function withService(test: (service: TestService) => Promise<void>): Promise<void> {
  const service = await serviceOfTest();
  await test(service);
}

describe.concurrent('slow callers', () => {
  it('are disconnected when they send nothing, and other callers are served', () =>
    withService(async (service) => {
      const connections = await Promise.all(
        Array.from({ length: SILENT_CONNECTION_COUNT }, () => RawConnection.open(service.url)),
      );
      for (let calls = 0; calls < 20; calls++) expect((await newCustomer(service)).entity_id).toBeTypeOf('string');
      await Promise.all(connections.map((connection) => connection.received()));
    }));

  it('get a response even if their body takes longer than a statement may', () =>
    withService(async (service) => {
      const body = JSON.stringify(cookieBody());
      const connection = await RawConnection.open(service.url);
      connection.send(
        `POST ${TOKEN} HTTP/1.1\r\nHost: auth.example\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`,
      );
      await sleep(3_200);
      connection.send(body);
      expect((await connection.response()).status).toBe(200);
    }));

  it('get 408 when their body is incomplete after 20 s, even if it arrives steadily', ({ expect }) =>
    withService(async (service) => {
      const customers = await identitiesOf(service).count();
      const body = JSON.stringify(cookieBody()).padEnd(BODY_BYTES);
      const startMs = performance.now();
      const connection = await RawConnection.open(service.url, { allowHalfOpen: true });
      connection.send(`POST ${TOKEN} HTTP/1.1\r\nHost: auth.example\r\nContent-Length: ${body.length}\r\n\r\n`);
      let sentBytes = 0;
      const drip = setInterval(() => connection.send(body[sentBytes++] ?? ''), BYTE_INTERVAL_MS);
      await connection.serviceClosed();
      clearInterval(drip);
      expect(performance.now() - startMs).toBeGreaterThan(REQUEST_TIMEOUT_MS - TIMER_TOLERANCE_MS);
      expect(sentBytes).toBeGreaterThan(15);
      expect(sentBytes).toBeLessThan(BODY_BYTES);
      connection.send(body.slice(sentBytes));
      const [response, ...others] = parseResponses(connection.receivedSoFar);
      expectError(response as NonNullable<typeof response>, { status: 408, error: 'invalid_request', hint: /^HTTP: / });
      expect(others).toEqual([]);
      await expect.poll(() => isDestroyedByService(connection.localPort)).toBe(true);
      expect(await identitiesOf(service).count()).toBe(customers);
    }));
});
