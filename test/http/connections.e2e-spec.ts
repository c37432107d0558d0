import { setTimeout as sleep } from 'node:timers/promises';
import { Module, Post } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ApiRoute } from '../../src/platform/http/api-route.js';
import { CONNECTION_LIMITS } from '../../src/platform/http/connection-limits.js';
import { PublicController } from '../../src/platform/http/surfaces.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { identitiesOf } from '../support/identities.js';
import { parseResponses, RawConnection } from '../support/raw-http.js';
import { isDestroyedByService } from '../support/server-sockets.js';
import { request } from '../support/test-service.js';
import { useService } from '../support/use-service.js';

/** The proportions of production, short enough for a test. */
const LIMITS = {
  maxConnections: 40,
  headersTimeoutMs: 800,
  requestTimeoutMs: 1_600,
  keepAliveTimeoutMs: 600,
  readingTimeoutMs: 1_000,
  lingerMs: 400,
  checkIntervalMs: 50,
};
/** Longer than any test. */
const LONG_MS = 600_000;
/**
 * The time that a connection may need beyond its timeout on a busy machine. Node adds 1 s to the keep-alive. The sum
 * stays below the timeouts of production, except the linger time.
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
let slowRequestCount = 0;

@PublicController('slow')
class SlowController {
  @Post()
  @ApiRoute({ summary: 'Wait', response: '*/*' })
  async post() {
    slowRequestCount++;
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
    await expectDestroyed(connection, timeoutMs + LIMITS.lingerMs);
  });

  it('loses its connection although it goes on sending after the error response', async () => {
    const connection = (await open()).send('garbage\r\n\r\n');
    await connection.serviceClosed();
    const sending = setInterval(() => connection.send('x'.repeat(1_000)), 50);
    await expectDestroyed(connection, LIMITS.lingerMs);
    clearInterval(sending);
  });

  it('loses an idle connection, also if it sends line ends all the time', async () => {
    const connection = (await open()).send(UNKNOWN_ROUTE);
    await vi.waitFor(() => expect(statuses(connection.receivedSoFar)).toEqual([404]), 60_000);
    const lineEnds = setInterval(() => connection.send('\r\n'), 50);
    await expectDestroyed(connection, LIMITS.keepAliveTimeoutMs + LIMITS.requestTimeoutMs + 5_000);
    clearInterval(lineEnds);
    expect(statuses(connection.receivedSoFar)).toEqual([404]);
  });

  it('loses a connection on which it sends its header byte by byte', async () => {
    const connection = (await open()).send('GET / HTTP/1.1\r\nX-Drip: ');
    const drip = setInterval(() => connection.send('x'), 50);
    await connection.serviceClosed();
    clearInterval(drip);
    expect(statuses(connection.receivedSoFar)).toEqual([408]);
    await expectDestroyed(connection, LIMITS.lingerMs);
  });

  it('loses its connection after a response with Connection: close', async () => {
    const connection = (await open()).send(UNKNOWN_ROUTE.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    await connection.serviceClosed();
    expect(statuses(connection.receivedSoFar)).toEqual([404]);
    await expectDestroyed(connection, LIMITS.lingerMs);
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
  await expectDestroyed(connection, LIMITS.lingerMs);
  expect(statuses(connection.receivedSoFar)).toEqual([408]);
  expect(await customers()).toBe(before);
});

it('the timeouts of each port are 10 s for the header and 20 s for the body, as protocol §2.11 says', () => {
  for (const limits of Object.values(CONNECTION_LIMITS))
    expect(limits).toMatchObject({ headersTimeoutMs: 10_000, requestTimeoutMs: 20_000 });
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
    await expectDestroyed(connection, LIMITS.lingerMs);
  });
});

describe('a client that still sends when it gets its error response', () => {
  const lingering = useService({ connections: { ...LIMITS, lingerMs: LONG_MS } });

  it.each([
    [400, 'no HTTP', 'garbage\r\n\r\n'],
    // the service reads a part before it responds, and destroys the connection after 1 MiB that it discards
    [413, 'a body of more than 1 MiB', head(2_000_000) + BODY.padEnd(1_055_000)],
  ])('gets the whole %i for %s, and no reset that could discard it', async (status, _what, bytes) => {
    const connection = (await RawConnection.open(lingering.url, HALF_OPEN)).send(bytes);
    await connection.serviceClosed();
    for (let sent = 0; sent < 5; sent++) {
      connection.send('x'.repeat(1_000));
      await sleep(40);
    }
    expect(connection.wasReset).toBe(false);
    expect(isDestroyedByService(connection.localPort)).toBe(false);
    expect(statuses(connection.receivedSoFar)).toEqual([status]);
    connection.abort();
  });
});

it('a client that does not read its responses loses its connection after the reading timeout', async () => {
  const connection = (await RawConnection.open(service.managementUrl, HALF_OPEN)).stopReading();
  const requests = setInterval(() => connection.send('GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'), 5);
  await sleep(500);
  await expectDestroyed(connection, LIMITS.readingTimeoutMs + LIMITS.lingerMs + 5_000);
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
    await sleep(LIMITS.lingerMs / 2);
    const [response, ...others] = parseResponses(connection.receivedSoFar);
    expectError(response as NonNullable<typeof response>, { status: 408, error: 'invalid_request', hint: /^HTTP: / });
    expect(others).toEqual([]);
    await expectDestroyed(connection, LIMITS.lingerMs);
    expect(await customers()).toBe(before);
    expect(statuses(connection.receivedSoFar)).toEqual([408]);
  });

  it.each([
    [400, 'no HTTP', 'garbage\r\n\r\n'],
    [400, 'two lengths', head(BODY.length, 'Content-Length: 3\r\n') + BODY],
    [431, 'a header of 17 KB', head(BODY.length, `X: ${'x'.repeat(17_000)}\r\n`) + BODY],
    [413, 'a body of 2 MB', head(2_000_000) + BODY.padEnd(2_000_000)],
  ])(
    'with status %i for %s prevents the handling of later requests, in the same packets or later',
    async (status, _what, bytes) => {
      const before = await customers();
      const connection = (await RawConnection.open(service.url, HALF_OPEN)).send(bytes + REQUEST + REQUEST);
      await connection.serviceClosed();
      connection.send(REQUEST);
      await expectDestroyed(connection, LIMITS.lingerMs);
      expect(statuses(connection.receivedSoFar)).toEqual([status]);
      expect(await customers()).toBe(before);
    },
  );

  it('to an incomplete request prevents a second response for the rest of its body', async () => {
    const connection = await RawConnection.open(service.url, HALF_OPEN);
    connection.send(`POST /nowhere HTTP/1.1\r\nHost: auth.example\r\nContent-Length: 100\r\n\r\nhalf`);
    await connection.serviceClosed();
    expect(statuses(connection.receivedSoFar)).toEqual([404]);
    await expectDestroyed(connection, LIMITS.lingerMs);
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
  it('are handled one after another, and their responses are in the same order', async () => {
    const before = await customers();
    const connection = await RawConnection.open(service.url);
    connection.send(SLOW_REQUEST + REQUEST + UNKNOWN_ROUTE + REQUEST);
    await sleep(200);
    expect({ made: (await customers()) - before, text: connection.receivedSoFar }).toEqual({ made: 0, text: '' });
    finishSlowRequests();
    await expect.poll(() => statuses(connection.receivedSoFar)).toEqual([201, 200, 404, 200]);
    expect((await customers()) - before).toBe(2);
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

describe('when a port has its maximum number of connections', () => {
  const OTHER_CONNECTION_COUNT = 3 * LIMITS.maxConnections;
  // No connection ends by a timeout during a test: a place becomes free only because the service closes one.
  const timeouts = { headersTimeoutMs: LONG_MS, requestTimeoutMs: LONG_MS, keepAliveTimeoutMs: LONG_MS };
  const service = useService({
    connections: { ...LIMITS, ...timeouts, readingTimeoutMs: LONG_MS, lingerMs: LONG_MS },
    modules: [SlowModule],
  });
  let connections: RawConnection[] = [];
  const openMany = async (url: string, bytes: string) => {
    for (let opened = 0; opened < OTHER_CONNECTION_COUNT; opened++)
      connections.push((await RawConnection.open(url, HALF_OPEN)).stopReading().send(bytes));
  };
  afterEach(() => {
    for (const connection of connections) connection.abort();
    connections = [];
  });

  it.each([
    ['in the middle of a header', 'POST / HTTP/1.1\r\nHost: auth.exa'],
    ['in the middle of a body', head(BODY.length) + BODY.slice(0, 40)],
    ['refused and still open', 'garbage\r\n\r\n'],
    ['idle and in the middle of a header', `${UNKNOWN_ROUTE}GET /`],
  ])('other clients are served while all connections are %s', async (_state, bytes) => {
    await openMany(service.url, bytes);
    await openMany(service.managementUrl, bytes);
    const connection = (await RawConnection.open(service.url)).send(REQUEST);
    await expect.poll(() => statuses(connection.receivedSoFar)).toEqual([200]);
    const live = await request(`${service.managementUrl}/health/live`, {});
    expect(live.status).toBe(200);
    connection.abort();
  });

  it('a connection that was used is kept, and so is one whose request is being handled', async () => {
    const used = (await RawConnection.open(service.url)).send(UNKNOWN_ROUTE);
    const handled = await RawConnection.open(service.url);
    const countBefore = slowRequestCount;
    handled.send(SLOW_REQUEST);
    await expect.poll(() => statuses(used.receivedSoFar)).toEqual([404]);
    await expect.poll(() => slowRequestCount - countBefore).toBe(1);
    await openMany(service.url, 'GET /');
    used.send(REQUEST);
    await expect.poll(() => statuses(used.receivedSoFar)).toEqual([404, 200]);
    finishSlowRequests();
    await expect.poll(() => statuses(handled.receivedSoFar)).toEqual([201]);
    used.abort();
    handled.abort();
  });

  it('a connection that was used is kept longer than younger connections without a request', async () => {
    const used = await RawConnection.open(service.url);
    for (let round = 1; round <= 6; round++) {
      used.send(UNKNOWN_ROUTE);
      await expect.poll(() => statuses(used.receivedSoFar)).toHaveLength(round);
      await sleep(3 * LIMITS.checkIntervalMs);
      for (let opened = 0; opened < LIMITS.maxConnections / 4; opened++)
        connections.push((await RawConnection.open(service.url, HALF_OPEN)).send(UNKNOWN_ROUTE));
    }
    used.abort();
  });

  it('a new connection is closed if every other connection has a request that is being handled', async () => {
    const countBefore = slowRequestCount;
    for (let opened = 0; opened < LIMITS.maxConnections; opened++)
      connections.push((await RawConnection.open(service.url)).send(SLOW_REQUEST));
    await expect.poll(() => slowRequestCount - countBefore).toBe(LIMITS.maxConnections);
    expect(await (await RawConnection.open(service.url)).send(REQUEST).received()).toBe('');
    finishSlowRequests();
    for (const connection of connections) await expect.poll(() => statuses(connection.receivedSoFar)).toEqual([201]);
    expect((await service.post(TOKEN, cookieBody())).status).toBe(200);
  });
});
