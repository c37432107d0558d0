import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { deferred, eventually, VerifierTest } from './support/started-verifier.js';
import { RESOURCE_SERVER } from './support/test-issuer.js';

const test = new VerifierTest();
const revoked = (value: string, changes: object = {}) => ({ kind: 'token', value, ...changes });
const STALE = { code: 'revocations_stale', statusCode: 503 };
const json =
  (body: unknown): RequestListener =>
  (_, response) =>
    void response.end(JSON.stringify(body));
const page = (...revocations: unknown[]) => ({ revocations, cursor: 'x', complete: true });
const EXPIRES = { expires_at: '2027-02-01T00:00:00.000Z' };
const inSeconds = (seconds: number) => new Date(test.clock.now() + seconds * 1000).toISOString();

describe('the revocation feed', () => {
  it('is read with form-urlencoded Basic credentials, first in full, then from the cursor with wait', async () => {
    test.issuer.feed.add(...Array.from({ length: 2_500 }, (_, index) => revoked(`token-${index}`)));
    const verifier = await test.start();
    expect(verifier.state).toMatchObject({ revocations: 'current', entries: 2_500, syncedAt: expect.any(Date) });
    await eventually(() => expect(test.issuer.feed.lastRequest?.search).toBe('?after=1.2500&wait=20'));
    expect(test.issuer.feed.requests.slice(0, 3).map(({ url }) => url.search)).toEqual([
      '',
      '?after=1.1000',
      '?after=1.2000',
    ]);
    const encoded = test.issuer.feed.requests[0]?.authorization?.replace('Basic ', '') ?? '';
    const [id = '', secret = ''] = Buffer.from(encoded, 'base64').toString().split(':').map(decodeURIComponent);
    expect({ id, secret }).toEqual(RESOURCE_SERVER);
  });

  it('is read by POST with a new assertion for each request, which is in no URL', async () => {
    let count = 0;
    const assertion = async () => `assertion-${++count}\n`;
    await test.start(test.revocations({ secret: undefined, assertion }));
    await eventually(() => expect(test.issuer.feed.requests.length).toBeGreaterThan(1));
    const [first, second] = test.issuer.feed.requests;
    const client_assertion_type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
    const proof = { client_id: RESOURCE_SERVER.id, client_assertion_type };
    expect(first).toMatchObject({ authorization: undefined, form: { ...proof, client_assertion: 'assertion-1' } });
    expect(second?.form).toEqual({ ...proof, client_assertion: 'assertion-2', after: '1.0', wait: '20' });
    expect([first?.url.search, second?.url.search]).toEqual(['', '']);
  });

  it('names in its state that there is no assertion, and goes on when there is one', async () => {
    let assertion: () => Promise<string> = () => Promise.reject(new Error('no file'));
    const verifier = test.create(test.revocations({ secret: undefined, assertion: () => assertion() }));
    await eventually(() => expect(verifier.state.problem).toBe('no_assertion'));
    assertion = async () => 'text';
    await verifier.ready();
    expect(verifier.state).toMatchObject({ revocations: 'current' });
  });

  it.each([
    [5, 1],
    [10, 3],
    [60, 20],
    [3_600, 25],
  ])(
    'that may be %d s old is asked to wait for %d s, so that an idle feed stays current',
    async (maxAgeSeconds, wait) => {
      await test.start(test.revocations({ maxAgeSeconds }));
      await eventually(() => expect(test.issuer.feed.lastRequest?.search).toBe(`?after=1.0&wait=${wait}`));
    },
  );

  it('is as old as the request for its last page, however late the response arrives', async () => {
    const released = deferred();
    const [first, last] = [{ revocations: [], cursor: 'y', complete: false }, page()];
    test.issuer.feed.handler = async (request, response) => {
      const isLast = request.url?.includes('after=y');
      if (isLast) await released.promise;
      response.end(JSON.stringify(isLast ? last : first));
    };
    const verifier = test.create();
    await eventually(() => expect(test.issuer.feed.lastRequest?.search).toBe('?after=y'));
    const requestedAt = test.clock.now();
    test.clock.advance(31);
    released.resolve();
    await verifier.ready();
    test.issuer.feed.handler = (_, response) => void response.writeHead(503).end();
    expect(verifier.state.syncedAt?.getTime()).toBe(requestedAt);
    const token = await test.token();
    test.clock.advance(29);
    expect(await verifier.verify(token)).toBeDefined();
    test.clock.advance(0.001);
    await expect(verifier.verify(token)).rejects.toMatchObject(STALE);
  });

  it('is not current after a response to a request that was sent before the machine was suspended', async () => {
    const released = deferred();
    const verifier = await test.start();
    await eventually(() => expect(test.issuer.feed.lastRequest?.search).toContain('wait'));
    const before = test.issuer.feed.requests.length;
    test.issuer.feed.handler = async (_, response) => {
      if (test.issuer.feed.requests.length > before + 1) return void response.writeHead(503).end();
      await released.promise;
      response.end(JSON.stringify(page()));
    };
    test.issuer.feed.add(revoked('other')); // ends the wait, so the verifier sends the next request
    await eventually(() => expect(test.issuer.feed.requests.length).toBe(before + 1));
    test.clock.set(61); // only this clock counts a suspension
    released.resolve();
    await eventually(() => expect(verifier.state.problem).toBe('error_response'));
    expect(verifier.state.revocations).toBe('stale');
  });

  it('is older by the Age of a response from a cache, and asks caches for a response of the service', async () => {
    const headers: IncomingHttpHeaders[] = [];
    test.issuer.feed.handler = (request, response) => {
      headers.push(request.headers);
      response.setHeader('Age', '59').end(JSON.stringify(page()));
    };
    const verifier = await test.start();
    expect(verifier.state).toMatchObject({ revocations: 'current' });
    test.clock.advance(1.001);
    expect(verifier.state.revocations).toBe('stale');
    expect(headers[0]).toMatchObject({ 'cache-control': 'no-cache' });
  });

  it.each<[string, RequestListener, string]>([
    ['cannot be reached', (request) => void request.socket.destroy(), 'unreachable'],
    ['rejects the credentials', (_, response) => void response.writeHead(401).end(), 'rejected_credentials'],
    [
      'responds with a redirect',
      (_, response) => void response.writeHead(307, { Location: '/' }).end(),
      'error_response',
    ],
    ['responds with an error', (_, response) => void response.writeHead(500).end(), 'error_response'],
  ])(
    'that %s is stale after maxAgeSeconds, and under reject no token is accepted then',
    async (_, handler, problem) => {
      const verifier = await test.start();
      const token = await test.token();
      test.issuer.feed.handler = handler;
      test.issuer.feed.add(revoked('other'));
      await eventually(() => expect(verifier.state).toMatchObject({ revocations: 'current', problem }));
      test.clock.advance(60);
      expect(await verifier.verify(token)).toBeDefined();
      test.clock.advance(0.001);
      expect(verifier.state).toMatchObject({ revocations: 'stale', problem });
      await expect(verifier.verify(token)).rejects.toMatchObject(STALE);
      test.issuer.feed.handler = undefined;
      await eventually(async () => expect(await verifier.verify(token)).toBeDefined());
    },
  );

  it('that is stale leaves tokens valid under accept, but not the tokens that are known to have ended', async () => {
    test.issuer.feed.add(revoked('token-2'));
    const verifier = await test.start(test.revocations({ onStale: 'accept' }));
    test.issuer.feed.handler = (_, response) => void response.writeHead(503).end();
    test.issuer.feed.add(revoked('other'));
    test.clock.advance(61);
    expect(verifier.state.revocations).toBe('stale');
    expect(await verifier.verify(await test.token())).toBeDefined();
    await expect(verifier.verify(await test.token({ jti: 'token-2' }))).rejects.toMatchObject({ code: 'revoked' });
  });

  it('is stale at once after the clock was set ahead by more than maxAgeSeconds', async () => {
    const verifier = await test.start();
    test.clock.set(61);
    expect(verifier.state.revocations).toBe('stale');
  });

  it('that rejects the cursor is read in full again, and the revocations in force stay in force', async () => {
    test.issuer.feed.add(revoked('token-1'));
    const verifier = await test.start();
    await eventually(() => expect(test.issuer.feed.lastRequest?.search).toBe('?after=1.1&wait=20'));
    test.issuer.feed.replaceBy(revoked('token-2'));
    await eventually(() => expect(verifier.state.entries).toBe(2));
    for (const jti of ['token-1', 'token-2'])
      await expect(verifier.verify(await test.token({ jti }))).rejects.toMatchObject({ code: 'revoked' });
    expect(verifier.state.revocations).toBe('current');
  });

  it.each<[string, unknown]>([
    ['a list', []],
    ['null', null],
    ['without revocations', { cursor: 'x', complete: true }],
    ['without a cursor', { revocations: [], complete: true }],
    ['with a long cursor', { revocations: [], cursor: 'x'.repeat(4_097), complete: true }],
    ['without complete', { revocations: [], cursor: 'x' }],
    ['with an entry that is null', page(null)],
    ['with an entry without a value', page({ kind: 'token', ...EXPIRES })],
    ['with an entry without an end', page({ kind: 'token', value: 'x' })],
    ['with an entry whose end is no time', page({ kind: 'token', value: 'x', expires_at: 'tomorrow' })],
  ])('is stale at once if its response is malformed: %s', async (_, body) => {
    const verifier = await test.start();
    test.issuer.feed.handler = json(body);
    test.issuer.feed.add(revoked('other'));
    await eventually(() =>
      expect(verifier.state).toMatchObject({ revocations: 'stale', problem: 'malformed_response' }),
    );
    await expect(verifier.verify(await test.token())).rejects.toMatchObject(STALE);
    test.issuer.feed.handler = undefined;
    await eventually(() => expect(verifier.state.revocations).toBe('current'));
  });

  it.each<[string, object]>([
    ['of an unknown kind', { kind: 'device' }],
    ['of a client without a time', { kind: 'client' }],
    ['of a client with an invalid time', { kind: 'client', issued_before: 'yesterday' }],
    ['of a client with a generation and a time', { kind: 'client', generation: 1, issued_before: EXPIRES.expires_at }],
    [
      'of a subject with a generation and a time',
      { kind: 'subject', generation: 1, issued_before: EXPIRES.expires_at },
    ],
    ['with an unknown field', { kind: 'token', audience: 'customer-api' }],
    ['of a token with a generation', { kind: 'token', generation: 1 }],
    ['of a token with an epoch', { kind: 'token', epoch: 1 }],
    ['of a session without an epoch', { kind: 'session' }],
    ['of a session with a negative epoch', { kind: 'session', epoch: -1 }],
    ['of a session with a generation and an epoch', { kind: 'session', epoch: 1, generation: 1 }],
    ['of a subject with a time', { kind: 'subject', issued_before: EXPIRES.expires_at }],
    ['of a subject without a generation', { kind: 'subject' }],
    ['of a subject with an invalid generation', { kind: 'subject', generation: -1 }],
    ['of a subject with a generation as text', { kind: 'subject', generation: '1' }],
  ])('is stale while an entry is in force that the verifier cannot apply: %s', async (_, entry) => {
    test.issuer.feed.add({ value: 'x', expires_at: inSeconds(100), ...entry });
    const verifier = await test.start();
    expect(verifier.state).toMatchObject({ revocations: 'stale', problem: 'unknown_entry' });
    test.issuer.feed.add(revoked('token-1'));
    await eventually(() => expect(verifier.state.entries).toBe(1)); // The other entries apply.
    test.clock.advance(100);
    test.issuer.feed.add(revoked('token-2'));
    await eventually(() => expect(verifier.state).toMatchObject({ revocations: 'current', entries: 2 }));
  });
});

describe('the list of revocations', () => {
  it('deletes an entry a minute after its end', async () => {
    test.issuer.feed.add(
      revoked('token-1', { expires_at: inSeconds(100) }),
      revoked('token-2', { expires_at: inSeconds(500) }),
    );
    const verifier = await test.start();
    test.clock.advance(159);
    test.issuer.feed.add(revoked('token-3'));
    await eventually(() => expect(verifier.state.entries).toBe(3));
    test.clock.advance(61);
    test.issuer.feed.add(revoked('token-4'));
    await eventually(() => expect(verifier.state.entries).toBe(3));
    await expect(verifier.verify(await test.token({ jti: 'token-2' }))).rejects.toMatchObject({ code: 'revoked' });
  });

  it('is stale after the clock was set back to a time at which deleted entries were in force, and is read again', async () => {
    test.issuer.feed.add(revoked('token-1', { expires_at: inSeconds(100) }));
    const verifier = await test.start();
    const token = await test.token();
    test.clock.set(1_000);
    test.issuer.feed.add(revoked('token-2'), revoked('token-3'));
    await eventually(() => expect(verifier.state.entries).toBe(2)); // The entry for token-1 is deleted.
    test.clock.set(-1_000);
    expect(verifier.state).toMatchObject({ revocations: 'stale', problem: 'clock_set_back' });
    // the list may be read again before the signature is verified
    const code = expect.stringMatching(/^(revocations_stale|revoked)$/);
    await expect(verifier.verify(token)).rejects.toMatchObject({ code });
    test.issuer.feed.add(revoked('token-4'));
    await eventually(() => expect(verifier.verify(token)).rejects.toMatchObject({ code: 'revoked' }));
    await eventually(() => expect(verifier.state).toMatchObject({ revocations: 'current', entries: 4 }));
  });

  it('stays current after the clock was set back by less than a minute', async () => {
    test.issuer.feed.add(revoked('token-1'));
    const verifier = await test.start();
    test.clock.set(-59);
    expect(verifier.state.revocations).toBe('current');
  });

  it('is stale while it has not enough room for all entries, and applies those that it has', async () => {
    test.issuer.feed.add(
      ...['token-1', 'token-2', 'token-3'].map((jti) => revoked(jti, { expires_at: inSeconds(100) })),
    );
    const verifier = await test.start({ ...test.revocations({ maxEntries: 2, onStale: 'accept' }) });
    expect(verifier.state).toMatchObject({ revocations: 'stale', problem: 'too_many_entries', entries: 2 });
    await expect(verifier.verify(await test.token({ jti: 'token-2' }))).rejects.toMatchObject({ code: 'revoked' });
    test.issuer.feed.add(revoked('token-2'));
    test.clock.advance(161);
    test.issuer.feed.add(revoked('token-4'));
    await eventually(() => expect(verifier.state).toMatchObject({ revocations: 'current', entries: 2 }));
  });
});

describe('the requests to the feed', () => {
  const requestCount = () => test.issuer.feed.requests.length;

  it('pause as long as Retry-After says', async () => {
    const verifier = await test.start();
    test.issuer.feed.handler = (_, response) => void response.writeHead(429, { 'Retry-After': '3' }).end();
    test.issuer.feed.add(revoked('token-1'));
    await eventually(() => expect(verifier.state.problem).toBe('error_response'));
    await eventually(() => expect(test.pausesMs).toContain(3_000));
  });

  it.each([true, false])('pause also if the service never waits, and the list is complete: %s', async (complete) => {
    const body = JSON.stringify({ revocations: [], cursor: 'x', complete });
    test.issuer.feed.handler = (_, response) => void response.end(body);
    const verifier = test.create();
    await eventually(() => expect(requestCount()).toBeGreaterThan(3));
    expect(verifier.state.revocations).toBe(complete ? 'current' : 'starting');
    expect(Math.min(...test.pausesMs.slice(1))).toBeGreaterThanOrEqual(1_000);
  });

  it.each<[string, RequestListener]>([
    ['a response has more than 16 MiB', (_, response) => void response.end(' '.repeat(16 * 1024 * 1024 + 1))],
    ['a response is not JSON', (_, response) => void response.end('<html>')],
  ])('do not follow each other without a pause if %s', async (_, handler) => {
    test.issuer.feed.handler = handler;
    const verifier = test.create();
    await eventually(() => expect(requestCount()).toBeGreaterThan(3));
    expect(verifier.state).toMatchObject({ revocations: 'starting', problem: 'malformed_response' });
    const [first = 0, second = 0, third = 0] = test.pausesMs;
    expect([first >= 250, second >= 500, third >= 1_000]).toEqual([true, true, true]);
  });

  it('end if the service does not respond, and so do those for the keys', async () => {
    let aborted = 0;
    const hang: RequestListener = (_, response) => void response.on('close', () => (aborted += 1));
    test.issuer.jwks = hang;
    test.issuer.feed.handler = hang;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const verifier = test.create(test.revocations({ onStale: 'accept' }));
    const rejected = expect(verifier.verify(await test.token())).rejects.toMatchObject({ code: 'keys_unavailable' });
    await eventually(async () => {
      await vi.advanceTimersByTimeAsync(1_000);
      expect(aborted).toBeGreaterThanOrEqual(2);
    });
    await rejected;
    expect(verifier.state.problem).toBe('unreachable');
  });
});
