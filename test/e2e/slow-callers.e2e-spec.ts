import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { identitiesOf } from '../support/identities.js';
import { parseResponses, RawConnection } from '../support/raw-http.js';
import { isDestroyedByService } from '../support/server-sockets.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { newCustomer } from '../support/transfers.js';

const SILENT = 1_000;

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service?.stop());

describe('callers that are slow on purpose', { timeout: 60_000 }, () => {
  it('hold no connection open by saying nothing, and meanwhile others are served', async () => {
    const connections = await Promise.all(Array.from({ length: SILENT }, () => RawConnection.open(service.url)));
    const begun = performance.now();
    for (let calls = 0; calls < 20; calls++) await newCustomer(service);
    expect(performance.now() - begun).toBeLessThan(5_000);
    await Promise.all(connections.map((connection) => connection.received()));
    expect(performance.now() - begun).toBeLessThan(15_000);
  });

  it('are served when their body takes longer than the database may', async () => {
    const body = JSON.stringify(cookieBody());
    const connection = await RawConnection.open(service.url);
    connection.send(
      `POST ${TOKEN} HTTP/1.1\r\nHost: auth.example\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    await sleep(3_200);
    connection.send(body);
    expect((await connection.answer()).status).toBe(200);
  });

  it('get 408 for a body that is not there after 20 s, however steadily it comes', async () => {
    const begun = performance.now();
    const customers = await identitiesOf(service).count();
    const body = JSON.stringify(cookieBody());
    const connection = await RawConnection.open(service.url, { allowHalfOpen: true });
    connection.send(`POST ${TOKEN} HTTP/1.1\r\nHost: auth.example\r\nContent-Length: ${body.length}\r\n\r\n`);
    let sent = 0;
    const drip = setInterval(() => connection.send(body[sent++] ?? ''), 1_000);
    await connection.serviceClosed();
    clearInterval(drip);
    connection.send(body.slice(sent));
    const [answer, ...others] = parseResponses(connection.receivedSoFar);
    expectError(answer as NonNullable<typeof answer>, { status: 408, error: 'invalid_request', hint: /^HTTP: / });
    expect(others).toEqual([]);
    expect(sent).toBeGreaterThan(15);
    expect(performance.now() - begun).toBeLessThan(25_000);
    await expect.poll(() => isDestroyedByService(connection.localPort), { timeout: 5_000 }).toBe(true);
    expect(await identitiesOf(service).count()).toBe(customers);
  });
});
