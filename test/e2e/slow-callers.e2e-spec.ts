import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { identitiesOf } from '../support/identities.js';
import { parseResponses, RawConnection } from '../support/raw-http.js';
import { isDestroyedByService } from '../support/server-sockets.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { newCustomer } from '../support/transfers.js';

const SILENT_CONNECTION_COUNT = 1_000;

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service?.stop());

describe('slow callers', { timeout: 60_000 }, () => {
  it('are disconnected when they send nothing, and other callers are served', async () => {
    const connections = await Promise.all(
      Array.from({ length: SILENT_CONNECTION_COUNT }, () => RawConnection.open(service.url)),
    );
    for (let calls = 0; calls < 20; calls++) expect((await newCustomer(service)).entity_id).toBeTypeOf('string');
    await Promise.all(connections.map((connection) => connection.received()));
  });

  it('get a response even if their body takes longer than a statement may', async () => {
    const body = JSON.stringify(cookieBody());
    const connection = await RawConnection.open(service.url);
    connection.send(
      `POST ${TOKEN} HTTP/1.1\r\nHost: auth.example\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    await sleep(3_200);
    connection.send(body);
    expect((await connection.response()).status).toBe(200);
  });

  it('get 408 when their body is incomplete after 20 s, even if it arrives steadily', async () => {
    const customers = await identitiesOf(service).count();
    const body = JSON.stringify(cookieBody());
    const connection = await RawConnection.open(service.url, { allowHalfOpen: true });
    connection.send(`POST ${TOKEN} HTTP/1.1\r\nHost: auth.example\r\nContent-Length: ${body.length}\r\n\r\n`);
    let sentBytes = 0;
    const drip = setInterval(() => connection.send(body[sentBytes++] ?? ''), 1_000);
    await connection.serviceClosed();
    clearInterval(drip);
    connection.send(body.slice(sentBytes));
    const [response, ...others] = parseResponses(connection.receivedSoFar);
    expectError(response as NonNullable<typeof response>, { status: 408, error: 'invalid_request', hint: /^HTTP: / });
    expect(others).toEqual([]);
    expect(sentBytes).toBeGreaterThan(15);
    await expect.poll(() => isDestroyedByService(connection.localPort), { timeout: 5_000 }).toBe(true);
    expect(await identitiesOf(service).count()).toBe(customers);
  });
});
