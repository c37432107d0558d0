import { describe, expect, it } from 'vitest';
import { checkOptions } from '../src/options.js';
import { TokenVerifier } from '../src/token-verifier.js';
import { eventually, VerifierTest } from './support/started-verifier.js';

const test = new VerifierTest();
const revoked = (value: string) => ({ kind: 'token', value });

it('close ends the requests, rejects ready, and lets no token be accepted', async () => {
  const verifier = await test.start();
  const starting = test.create();
  const ready = starting.ready();
  starting.close();
  await expect(ready).rejects.toMatchObject({ code: 'verifier_closed' });
  let closed = false;
  test.issuer.feed.handler = (_, response) => void response.on('close', () => (closed = true));
  test.issuer.feed.add(revoked('other'));
  const before = test.issuer.feed.requests.length;
  await eventually(() => expect(test.issuer.feed.requests.length).toBeGreaterThan(before));
  verifier.close();
  await eventually(() => expect(closed).toBe(true));
  expect(verifier.state.revocations).toBe('closed');
  await expect(verifier.verify(await test.token())).rejects.toMatchObject({
    code: 'verifier_closed',
    statusCode: 503,
  });
});

describe('ready', () => {
  it('resolves only when the keys were fetched too, and fetches them again after an error', async () => {
    test.issuer.jwks = (_, response) => void response.writeHead(503).end();
    const verifier = test.create();
    await eventually(() => expect(verifier.state.revocations).toBe('current'));
    await eventually(() =>
      expect(verifier.ready({ signal: AbortSignal.timeout(50) })).rejects.toMatchObject({
        message: 'The verifier is not ready: the keys were not read (the response has status 503)',
        cause: { name: 'TimeoutError' },
      }),
    );
    await expect(verifier.verify(await test.token())).rejects.toMatchObject({ code: 'keys_unavailable' });
    test.issuer.jwks = undefined;
    test.clock.advance(1);
    await verifier.ready({ signal: AbortSignal.timeout(20_000) });
    const { jwksRequests } = test.issuer;
    expect(await verifier.verify(await test.token())).toBeDefined();
    expect(test.issuer.jwksRequests).toBe(jwksRequests);
  });

  it('rejects when its signal aborts, and resolves later with the first list', async () => {
    test.issuer.feed.handler = (_, response) => void response.writeHead(503).end();
    const verifier = test.create();
    expect(verifier.state).toEqual({ revocations: 'starting', entries: 0 });
    const reason = new Error('too slow');
    await expect(verifier.ready({ signal: AbortSignal.abort(reason) })).rejects.toMatchObject({ cause: reason });
    await expect(verifier.ready({ signal: AbortSignal.timeout(1) })).rejects.toMatchObject({
      cause: { name: 'TimeoutError' },
    });
    await expect(verifier.verify(await test.token())).rejects.toMatchObject({ code: 'revocations_stale' });
    test.issuer.feed.handler = undefined;
    await verifier.ready({ signal: AbortSignal.timeout(20_000) });
    expect(verifier.state.revocations).toBe('current');
  });

  it.each(['reject', 'accept'] as const)(
    'need not be called, but until the first list %s accepts no token',
    async (onStale) => {
      test.issuer.feed.handler = (_, response) => void response.writeHead(401).end();
      const verifier = test.create(test.revocations({ onStale }));
      await eventually(() => expect(verifier.state.problem).toBe('rejected_credentials'));
      const token = await test.token();
      await expect(verifier.verify(token)).rejects.toMatchObject({ code: 'revocations_stale', statusCode: 503 });
      test.issuer.feed.handler = undefined;
      await eventually(async () => expect(await verifier.verify(token)).toBeDefined());
    },
  );
});

const revocations = (changes: object) => ({ revocations: { ...test.issuer.options.revocations, ...changes } });
it.each<[string, () => object]>([
  ['issuer', () => ({ issuer: 'auth.example' })],
  ['issuer', () => ({ issuer: '' })],
  ['audience', () => ({ audience: [] })],
  ['audience', () => ({ audience: '' })],
  ['audience', () => ({ audience: 'x' })],
  ['audience', () => ({ audience: ['customer-api', undefined] })],
  ['jwksUrl', () => ({ jwksUrl: 'file:///keys.json' })],
  ['jwksUrl', () => ({ jwksUrl: 'http://auth.example/keys' })],
  ['maxKeyAgeSeconds', () => ({ maxKeyAgeSeconds: 86_401 })],
  ['cacheSize', () => ({ cacheSize: -1 })],
  ['revocations.id', () => ({ revocations: undefined })],
  ['revocations.id', () => revocations({ id: '' })],
  ['revocations.secret', () => revocations({ secret: undefined })],
  ['revocations.assertion', () => revocations({ secret: undefined, assertion: 'text' })],
  ['revocations', () => revocations({ assertion: async () => 'text' })],
  ['revocations.url', () => revocations({ url: 'https://user:password@auth.example/oauth2/revocations' })],
  ['maxAgeSeconds', () => revocations({ maxAgeSeconds: 4 })],
  ['maxAgeSeconds', () => revocations({ maxAgeSeconds: undefined })],
  ['maxEntries', () => revocations({ maxEntries: 0 })],
  ['allowPlainHttp', () => ({ allowPlainHttp: 'false' })],
  ['onStale', () => revocations({ onStale: 'ignore' })],
])('the options are checked: an invalid %s is named', (name, changes) => {
  const options = { ...test.issuer.options, ...changes() };
  const create = () => new TokenVerifier(options as typeof test.issuer.options, test.clock);
  expect(create).toThrow(TypeError);
  expect(create).toThrow(`${name}: `);
});

describe('a plain http URL', () => {
  const withUrl = {
    issuer: (url: string) => ({ issuer: url, jwksUrl: 'https://auth.example/keys' }),
    jwksUrl: (url: string) => ({ jwksUrl: url }),
    'revocations.url': (url: string) => test.revocations({ url }),
  };
  /** A verifier would send requests to these hosts. */
  const check = (changes: object) => () => checkOptions({ ...test.issuer.options, ...changes });

  const OTHER_HOSTS = [
    ...['auth.example', 'customer-authorization.default.svc:3001', 'localhost.example', '127.0.0.1.example'],
    ...['10.0.0.1', '0.0.0.0', '128.0.0.1', '[::]', '[::ffff:127.0.0.1]', '[fe80::1]', 'a.localhost'],
  ];
  const THIS_MACHINE = [
    ...['localhost', 'LOCALHOST:3001', '127.0.0.1', '127.255.0.9:3001', '127.1', '[::1]', '[0:0::1]:3001'],
  ];

  it.each(Object.entries(withUrl))(
    'is accepted in %s only for this machine, or with allowPlainHttp',
    (name, changesOf) => {
      const message = `${name}: must be an https URL, or allowPlainHttp must be true`;
      for (const host of OTHER_HOSTS)
        expect(check(changesOf(`http://${host}/x`)), host).toThrow(new TypeError(message));
      for (const host of THIS_MACHINE) expect(check(changesOf(`http://${host}/x`)), host).not.toThrow();
      expect(check({ ...changesOf('http://auth.example/x'), allowPlainHttp: true })).not.toThrow();
      expect(check({ ...changesOf('https://auth.example/x'), allowPlainHttp: false })).not.toThrow();
    },
  );
});
