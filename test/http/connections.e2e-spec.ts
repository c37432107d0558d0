import { setTimeout as sleep } from 'node:timers/promises';
import { Module, Post } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ApiRoute } from '../../src/platform/http/api-route.js';
import { PublicController } from '../../src/platform/http/listener.decorators.js';
import { TIMEOUTS } from '../../src/platform/http/listeners.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { identitiesOf } from '../support/identities.js';
import { parseResponses, RawConnection } from '../support/raw-http.js';
import { isDestroyedByService } from '../support/server-sockets.js';
import { request } from '../support/test-service.js';
import { serviceOfTest, useService } from '../support/use-service.js';

/** The proportions of production, short enough for a test. */
const LIMITS = {
  maxConnections: 40,
  headersTimeoutMs: 800,
  requestTimeoutMs: 1_600,
  keepAliveTimeoutMs: 600,
  silenceTimeoutMs: 2_000,
  checkIntervalMs: 50,
};
/** Longer than any test. */
const LONG_MS = 600_000;
/**
 * The time that a connection may need beyond its timeout on a busy machine. Node adds 1 s to the keep-alive. The sum
 * stays below the timeouts of production.
 */
const ALLOWANCE_MS = 8_000;
const HALF_OPEN = { allowHalfOpen: true };

const BODY = JSON.stringify(cookieBody());
const head = (length: number, more = '') =>
  `POST ${TOKEN} HTTP/1.1\r\nHost: auth.example\r\nContent-Length: ${length}\r\n${more}\r\n`;
const REQUEST = head(BODY.length) + BODY;
const SLOW_REQUEST = 'POST /slow HTTP/1.1\r\nHost: auth.example\r\nContent-Length: 0\r\n\r\n';
const UNKNOWN_ROUTE = 'GET /nowhere HTTP/1.1\r\nHost: auth.example\r\n\r\n';

let finishSlowRequests: () => void = () => undefined;

@PublicController('slow')
class SlowController {
  @Post()
  @ApiRoute({ summary: 'Wait', response: '*/*' })
  async post() {
    await new Promise<void>((resolve) => {
      const earlier = finishSlowRequests;
      finishSlowRequests = () => {
        earlier();
        resolve();
      };
    });
    return { finished: true };
  }
}

@Module({ controllers: [SlowController] })
class SlowModule {}

const service = useService({ connections: LIMITS, modules: [SlowModule] });
afterEach(() => finishSlowRequests());

const customers = () => identitiesOf(service).count();
const statuses = (text: string) => parseResponses(text).map(({ status }) => status);

/** Fails unless the service destroys the connection in time, although the client keeps it open. */
async function expectDestroyed({ localPort }: RawConnection, withinMs: number): Promise<void> {
  const timeout = withinMs + ALLOWANCE_MS;
  // `expect.poll` is not possible in concurrent tests
  await vi.waitFor(() => expect(isDestroyedByService(localPort)).toBe(true), { timeout, interval: 20 });
}

describe.concurrent.each(['public', 'management'])('a client that never closes its side, on the %s port,', (port) => {
  const open = () => RawConnection.open(port === 'public' ? service.url : service.managementUrl, HALF_OPEN);

  it.each([
    [400, 'no HTTP', 'garbage\r\n\r\n', 0],
    [400, 'CONNECT', 'CONNECT auth.example:443 HTTP/1.1\r\nHost: auth.example\r\n\r\n', 0],
    [431, 'a header of 17 KB', `GET / HTTP/1.1\r\nHost: auth.example\r\nX: ${'x'.repeat(17_000)}`, 0],
    [408, 'nothing', '', LIMITS.headersTimeoutMs],
    [408, 'half a header', 'GET / HTTP/1.1\r\nHost: auth.example\r\nX-Half:', LIMITS.headersTimeoutMs],
    [408, 'half of a second header', `${UNKNOWN_ROUTE}GET / HTTP/1.1\r\nHost: auth`, LIMITS.headersTimeoutMs],
  ])('gets one %i and loses its connection after it has sent %s', async (status, what, bytes, timeoutMs) => {
    const connection = (await open()).send(bytes);
    await connection.serviceClosed();
    const [response, ...others] = parseResponses(connection.receivedSoFar).slice(what.includes('second') ? 1 : 0);
    expectError(response as NonNullable<typeof response>, { status, error: 'invalid_request', hint: /^HTTP: / });
    expect({ others, connection: response?.headers.get('connection') }).toEqual({ others: [], connection: 'close' });
    await expectDestroyed(connection, timeoutMs);
  });

  it('loses an idle connection', async () => {
    const connection = (await open()).send(UNKNOWN_ROUTE);
    await vi.waitFor(() => expect(statuses(connection.receivedSoFar)).toEqual([404]), 60_000);
    await expectDestroyed(connection, LIMITS.keepAliveTimeoutMs);
  });

  it('loses a connection on which it sends its header byte by byte', async () => {
    const connection = (await open()).send('GET / HTTP/1.1\r\nX-Drip: ');
    const drip = setInterval(() => connection.send('x'), 50);
    await connection.serviceClosed();
    clearInterval(drip);
    expect(statuses(connection.receivedSoFar)).toEqual([408]);
    await expectDestroyed(connection, 0);
  });

  it('loses its connection after a response with Connection: close', async () => {
    const connection = (await open()).send(UNKNOWN_ROUTE.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    await connection.serviceClosed();
    expect(statuses(connection.receivedSoFar)).toEqual([404]);
    await expectDestroyed(connection, 0);
  });
});

it('a client gets 408 if its body is incomplete after the request timeout, even if it arrives steadily', async () => {
  const before = await customers();
  const connection = (await RawConnection.open(service.url, HALF_OPEN)).send(head(BODY.length));
  let sentBytes = 0;
  const drip = setInterval(() => connection.send(BODY[sentBytes++] ?? ''), 100);
  await connection.serviceClosed();
  clearInterval(drip);
  expect(sentBytes).toBeLessThan(BODY.length);
  connection.send(BODY.slice(sentBytes));
  await expectDestroyed(connection, 0);
  expect(statuses(connection.receivedSoFar)).toEqual([408]);
  expect(await customers()).toBe(before);
});

it('the timeouts are 10 s for the header and 20 s for the body, as protocol §2.13 says', () => {
  expect(TIMEOUTS).toMatchObject({ headersTimeoutMs: 10_000, requestTimeoutMs: 20_000 });
});

it('KEEP_ALIVE_SECONDS says how long an idle connection stays open', async () => {
  const { keepAliveTimeoutMs: _default, ...others } = LIMITS;
  const service = await serviceOfTest({ environment: { KEEP_ALIVE_SECONDS: '1' }, connections: others });
  const response = await (await RawConnection.open(service.url)).send(UNKNOWN_ROUTE).response(); // until it is closed
  expect(response.headers.get('keep-alive')).toBe('timeout=1');
});

describe('a client that closes its side first', () => {
  it.each([
    ['without a request', [], ''],
    ['within a body', [400], head(100) + BODY.slice(0, 50)],
  ])('%s gets %j, and the service closes the other side', async (_when, expected, bytes) => {
    const connection = (await RawConnection.open(service.url, HALF_OPEN)).send(bytes).end();
    expect(statuses(await connection.received())).toEqual(expected);
  });

  it('loses its connection if it has sent a complete request', async () => {
    const connection = (await RawConnection.open(service.url, HALF_OPEN)).send(REQUEST).end();
    await expectDestroyed(connection, 0);
  });
});

it('a client that does not read its responses loses its connection', async () => {
  const connection = (await RawConnection.open(service.managementUrl, HALF_OPEN)).stopReading();
  const requests = setInterval(() => connection.send('GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'), 5);
  await sleep(500);
  await expectDestroyed(connection, LIMITS.silenceTimeoutMs);
  clearInterval(requests);
});

describe('an error response that ends the connection', () => {
  it.each([
    ['with Content-Length', head(BODY.length) + BODY.slice(0, 40), BODY.slice(40)],
    [
      'in chunks',
      `${head(0).replace('Content-Length: 0', 'Transfer-Encoding: chunked')}8\r\n${BODY.slice(0, 8)}\r\n`,
      `${(BODY.length - 8).toString(16)}\r\n${BODY.slice(8)}\r\n0\r\n\r\n`,
    ],
  ])('prevents the handling of a request %s whose rest comes after the 408', async (_how, first, rest) => {
    const before = await customers();
    const connection = (await RawConnection.open(service.url, HALF_OPEN)).send(first);
    await connection.serviceClosed();
    connection.send(rest).send(REQUEST);
    const [response, ...others] = parseResponses(connection.receivedSoFar);
    expectError(response as NonNullable<typeof response>, { status: 408, error: 'invalid_request', hint: /^HTTP: / });
    expect(others).toEqual([]);
    await expectDestroyed(connection, 0);
    expect(await customers()).toBe(before);
    expect(statuses(connection.receivedSoFar)).toEqual([408]);
  });

  it.each([
    [400, 'no HTTP', 'garbage\r\n\r\n'],
    [400, 'two lengths', head(BODY.length, 'Content-Length: 3\r\n') + BODY],
    [400, 'an invalid Host', head(BODY.length).replace('auth.example', 'user@auth.example') + BODY],
    [431, 'a header of 17 KB', head(BODY.length, `X: ${'x'.repeat(17_000)}\r\n`) + BODY],
    [413, 'a body of 2 MB', head(2_000_000) + BODY.padEnd(2_000_000)],
  ])(
    'with status %i for %s prevents the handling of later requests, in the same packets or later',
    async (status, _what, bytes) => {
      const before = await customers();
      const connection = (await RawConnection.open(service.url, HALF_OPEN)).send(bytes + REQUEST + REQUEST);
      await connection.serviceClosed();
      connection.send(REQUEST);
      await expectDestroyed(connection, 0);
      expect(statuses(connection.receivedSoFar)).toEqual([status]);
      expect(await customers()).toBe(before);
    },
  );

  it('to an incomplete request prevents a second response for the rest of its body', async () => {
    const connection = await RawConnection.open(service.url, HALF_OPEN);
    connection.send(`POST /nowhere HTTP/1.1\r\nHost: auth.example\r\nContent-Length: 100\r\n\r\nhalf`);
    await connection.serviceClosed();
    expect(statuses(connection.receivedSoFar)).toEqual([404]);
    await expectDestroyed(connection, 0);
  });

  it('is not sent if a request becomes invalid after its handler has begun, which sends the response', async () => {
    const { access_token } = (await service.post(TOKEN, cookieBody())).body;
    const connection = await RawConnection.open(service.url);
    const bearer = `Authorization: Bearer ${access_token}`;
    connection.send(`DELETE ${TOKEN} HTTP/1.1\r\nHost: x\r\n${bearer}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`);
    const text = await connection.received();
    expect(statuses(text)).toEqual([200]);
    expect(text).toContain('Connection: close');
  });
});

describe('pipelined requests', () => {
  it('get their responses in the order of the requests', async () => {
    const before = await customers();
    const connection = await RawConnection.open(service.url);
    connection.send(SLOW_REQUEST + REQUEST + UNKNOWN_ROUTE + REQUEST);
    await expect.poll(async () => (await customers()) - before).toBe(2);
    expect(connection.receivedSoFar).toBe('');
    finishSlowRequests();
    await expect.poll(() => statuses(connection.receivedSoFar)).toEqual([201, 200, 404, 200]);
    connection.abort();
  });

  it('that arrived completely get their responses before the error response to a later invalid request', async () => {
    const before = await customers();
    const connection = await RawConnection.open(service.url);
    connection.send(`${REQUEST + REQUEST}garbage\r\n\r\n${REQUEST}`);
    expect(statuses(await connection.received())).toEqual([200, 200, 400]);
    expect((await customers()) - before).toBe(2);
  });

  it('end the connection if there are too many', async () => {
    const connection = await RawConnection.open(service.url);
    connection.send(SLOW_REQUEST + UNKNOWN_ROUTE.repeat(100));
    await expect.poll(() => isDestroyedByService(connection.localPort)).toBe(true);
    expect(connection.receivedSoFar).toBe('');
  });
});

it('when a port has its maximum number of connections, a further one is closed until an earlier one ends', async () => {
  const service = await serviceOfTest({ connections: { ...LIMITS, keepAliveTimeoutMs: LONG_MS } });
  const connections: RawConnection[] = [];
  for (let opened = 0; opened < LIMITS.maxConnections; opened++) {
    const connection = (await RawConnection.open(service.url)).send(UNKNOWN_ROUTE);
    await expect.poll(() => statuses(connection.receivedSoFar)).toEqual([404]);
    connections.push(connection);
  }
  expect(await (await RawConnection.open(service.url)).send(REQUEST).received()).toBe('');
  expect((await request(`${service.managementUrl}/health/live`, {})).status).toBe(200);
  connections[0]?.abort();
  await expect
    .poll(() =>
      service.post(TOKEN, cookieBody()).then(
        ({ status }) => status,
        () => 0,
      ),
    )
    .toBe(200);
  for (const connection of connections) connection.abort();
});
