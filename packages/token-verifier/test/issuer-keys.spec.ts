import type { RequestListener } from 'node:http';
import { describe, expect, it } from 'vitest';
import { deferred, eventually, VerifierTest } from './support/started-verifier.js';

const test = new VerifierTest();
const FAIL: RequestListener = (_, response) => void response.writeHead(503).end();

/** A token with the header of a token of the issuer, and a signature of no key. */
function forged(kid: string): string {
  const header = Buffer.from(JSON.stringify({ typ: 'at+jwt', alg: 'ES256', kid })).toString('base64url');
  return `${header}.e30.${'A'.repeat(86)}`;
}

describe('the keys of the issuer', () => {
  it('are fetched once for concurrent tokens', async () => {
    const verifier = await test.start();
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, index) => test.token({ jti: `token-${index}` })));
    await Promise.all(tokens.map((token) => verifier.verify(token)));
    expect(test.issuer.jwksRequests).toBe(1);
  });

  it('are fetched from jwksUrl, if that is set', async () => {
    const verifier = await test.start({ jwksUrl: `${test.issuer.url}/keys`, issuer: 'https://auth.example' });
    expect(await verifier.verify(await test.token({ iss: 'https://auth.example' }))).toBeDefined();
  });

  it('are fetched again for an unknown kid, at most once in 30 s', async () => {
    const verifier = await test.start();
    await verifier.verify(await test.token());
    await test.issuer.addKey();
    test.clock.advance(29);
    await expect(verifier.verify(await test.token())).rejects.toMatchObject({ code: 'keys_unavailable' });
    expect(test.issuer.jwksRequests).toBe(1);
    test.clock.advance(1);
    await Promise.all([1, 2, 3].map(async () => verifier.verify(await test.token())));
    expect(test.issuer.jwksRequests).toBe(2);
  });

  it('that were requested before a token names an unknown key give 503, and those requested after it give 401', async () => {
    const verifier = await test.start();
    const codeOf = (kid: string) =>
      verifier.verify(forged(kid)).then(
        () => 'valid',
        ({ code, headers }) => [code, headers['Retry-After']],
      );
    expect(await codeOf('forged-1')).toEqual(['keys_unavailable', '30']);
    test.clock.advance(29);
    expect(await codeOf('forged-1')).toEqual(['keys_unavailable', '1']);
    expect(test.issuer.jwksRequests).toBe(1);
    test.clock.advance(1);
    expect(await codeOf('forged-2')).toEqual(['unknown_key', undefined]);
    expect(await codeOf('forged-1')).toEqual(['unknown_key', undefined]);
    expect(await codeOf('forged-3')).toEqual(['keys_unavailable', '30']);
    expect(test.issuer.jwksRequests).toBe(2);
  });

  it('that were removed give 401 at once to a token of such a key', async () => {
    const verifier = await test.start(test.revocations({ maxAgeSeconds: 3_600 }));
    const token = await test.token();
    await verifier.verify(token);
    test.issuer.keys.pop();
    await test.issuer.addKey('key-2');
    test.clock.advance(300);
    await expect(verifier.verify(token)).rejects.toMatchObject({ code: 'unknown_key' });
    expect(await verifier.verify(await test.token())).toBeDefined();
    expect(test.issuer.jwksRequests).toBe(2);
  });

  it('are not decided by a request for them that was sent before a token arrived', async () => {
    const verifier = await test.start();
    const [begun, released] = [deferred(), deferred()];
    const published = JSON.stringify({ keys: test.issuer.keys.map(({ jwk }) => jwk) });
    test.issuer.jwks = async (_, response) => {
      begun.resolve();
      await released.promise;
      response.end(published);
    };
    test.clock.advance(30);
    const earlier = expect(verifier.verify(forged('forged'))).rejects.toMatchObject({ code: 'unknown_key' });
    await begun.promise;
    await test.issuer.addKey();
    const later = expect(verifier.verify(await test.token())).rejects.toMatchObject({ code: 'keys_unavailable' });
    released.resolve();
    await Promise.all([earlier, later]);
    test.issuer.jwks = undefined;
    test.clock.advance(30);
    expect(await verifier.verify(await test.token())).toBeDefined();
    expect(test.issuer.jwksRequests).toBe(3);
  });

  it('are remembered as unknown only up to a bound, so that many forged ids take no memory', async () => {
    const verifier = await test.start();
    const first = expect(verifier.verify(forged('first'))).rejects;
    await first.toMatchObject({ code: 'keys_unavailable' });
    for (let index = 0; index < 100; index++) await verifier.verify(forged(`forged-${index}`)).catch(() => {});
    test.clock.advance(30);
    await verifier.verify(forged('another')).catch(() => {});
    await expect(verifier.verify(forged('forged-99'))).rejects.toMatchObject({ code: 'unknown_key' });
    await expect(verifier.verify(forged('first'))).rejects.toMatchObject({ code: 'keys_unavailable' });
    expect(test.issuer.jwksRequests).toBe(2);
  });

  it('are as old as the request for them and the Age of a response from a cache', async () => {
    const published = JSON.stringify({ keys: test.issuer.keys.map(({ jwk }) => jwk) });
    const released = deferred();
    test.issuer.jwks = async (_, response) => {
      await released.promise;
      response.setHeader('Age', '100').end(published);
    };
    const verifier = test.create({ maxKeyAgeSeconds: 200, ...test.revocations({ maxAgeSeconds: 3_600 }) });
    const token = await test.token();
    await eventually(() => expect(test.issuer.jwksRequests).toBe(1));
    test.clock.advance(50);
    released.resolve();
    await verifier.ready();
    test.issuer.jwks = FAIL;
    test.clock.advance(49);
    expect(await verifier.verify(token)).toBeDefined();
    test.clock.advance(1);
    await expect(verifier.verify(token)).rejects.toMatchObject({ code: 'keys_unavailable' });
  });

  it('that replace a key under the same kid verify no token of the earlier key', async () => {
    const verifier = await test.start(test.revocations({ maxAgeSeconds: 3_600 }));
    const token = await test.token();
    await verifier.verify(token);
    test.issuer.keys.pop();
    await test.issuer.addKey('key-1');
    test.clock.advance(300);
    await expect(verifier.verify(token)).rejects.toMatchObject({ code: 'invalid_signature' });
  });

  it('verify a token before a slow fetch of newer keys has ended', async () => {
    const verifier = await test.start(test.revocations({ maxAgeSeconds: 3_600 }));
    const token = await test.token();
    await verifier.verify(token);
    let ended = 0;
    test.issuer.jwks = (_, response) => void response.on('close', () => (ended += 1));
    test.clock.advance(300);
    await verifier.verify(token);
    await verifier.verify(token);
    expect({ requests: test.issuer.jwksRequests, ended }).toEqual({ requests: 2, ended: 0 });
  });

  it('verify tokens while they cannot be fetched, until they are maxKeyAgeSeconds old', async () => {
    const verifier = await test.start({ maxKeyAgeSeconds: 600, ...test.revocations({ maxAgeSeconds: 3_600 }) });
    await verifier.verify(await test.token());
    test.issuer.jwks = FAIL;
    test.clock.advance(599);
    expect(await verifier.verify(await test.token())).toBeDefined();
    test.clock.advance(1);
    const unavailable = { code: 'keys_unavailable', statusCode: 503, headers: { 'Retry-After': '5' } };
    await expect(verifier.verify(await test.token())).rejects.toMatchObject(unavailable);
    test.issuer.jwks = undefined;
    test.clock.advance(1);
    expect(await verifier.verify(await test.token())).toBeDefined();
  });

  it('are requested at most once a second while they cannot be fetched', async () => {
    test.issuer.jwks = FAIL;
    const verifier = test.create();
    const token = await test.token();
    for (let index = 0; index < 5; index++)
      await expect(verifier.verify(token)).rejects.toMatchObject({ code: 'keys_unavailable' });
    expect(test.issuer.jwksRequests).toBe(1);
    test.clock.advance(1);
    await expect(verifier.verify(token)).rejects.toMatchObject({ code: 'keys_unavailable' });
    expect(test.issuer.jwksRequests).toBe(2);
  });

  it.each<[string, RequestListener]>([
    ['is a redirect', (_, response) => void response.writeHead(302, { Location: '/elsewhere' }).end()],
    ['is not JSON', (_, response) => void response.end('<html>')],
    ['is no set', (_, response) => void response.end('null')],
    ['has no key for ES256', (_, response) => void response.end('{"keys":[null,1,{"kty":"RSA","kid":"key-1"}]}')],
    ['has more than 64 KiB', (_, response) => void response.end(`{"keys":[]}${' '.repeat(65_536)}`)],
    [
      'ends early',
      (_, response) => void response.writeHead(200, { 'Content-Length': 10 }).end('{', () => response.destroy()),
    ],
  ])('do not change if the response %s', async (_, handler) => {
    const verifier = await test.start(test.revocations({ maxAgeSeconds: 3_600 }));
    const token = await test.token();
    await verifier.verify(token);
    test.issuer.jwks = handler;
    test.clock.advance(300);
    await verifier.verify(token);
    await eventually(() => expect(test.issuer.jwksRequests).toBe(2));
    expect(await verifier.verify(token)).toBeDefined();
  });

  it('of other kinds in the set are left out', async () => {
    const keys = [
      { kty: 'RSA', kid: 'rsa' },
      { kty: 'EC', crv: 'P-256', kid: 'broken', x: 'AA', y: 'AA' },
      test.issuer.keys[0]?.jwk,
    ];
    test.issuer.jwks = (_, response) => void response.end(JSON.stringify({ keys }));
    const verifier = await test.start();
    expect(await verifier.verify(await test.token())).toBeDefined();
  });
});
