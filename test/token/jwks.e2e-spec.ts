import { createPublicKey, verify } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../../packages/conformance-kit/src/migrated-schema.js';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import type { PublicJwk } from '../../src/access-token/key-set.js';
import { generateKey } from '../../src/access-token/key-set.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { ACME, ACME_ORIGIN, ACME_SITE } from '../support/test-registry.js';
import { startTestService, type TestResponse, type TestService } from '../support/test-service.js';

const JWKS = '/.well-known/jwks.json';

describe('GET /.well-known/jwks.json', () => {
  let service: TestService;
  let response: TestResponse;
  beforeAll(async () => {
    service = await startTestService();
    response = await service.send('GET', JWKS);
  });
  afterAll(() => service?.stop());

  it('publishes only the public half of each key', () => {
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch(/^application\/json\b/);
    expect(Object.keys(response.body)).toEqual(['keys']);
    expect(response.body.keys).toEqual([
      {
        kty: 'EC',
        crv: 'P-256',
        x: expect.stringMatching(/^[\w-]{43}$/),
        y: expect.stringMatching(/^[\w-]{43}$/),
        kid: expect.stringMatching(/^[\w-]+$/),
        alg: 'ES256',
        use: 'sig',
      },
    ]);
    expect(response.text).not.toMatch(/"d"|nbf|exp/);
  });

  it('may be cached for at least a minute and less than an hour', () => {
    const [, seconds] = /\bmax-age=(\d+)/.exec(response.headers.get('cache-control') ?? '') ?? [];
    expect(Number(seconds)).toBeGreaterThanOrEqual(60);
    expect(Number(seconds)).toBeLessThan(3_600);
    expect(response.headers.get('cache-control')).not.toMatch(/no-store|private/);
  });

  it.each([undefined, ACME_ORIGIN, 'https://unregistered.example', 'null'])(
    'allows every origin, without credentials: %s',
    async (origin) => {
      const { headers } = await service.send('GET', JWKS, origin === undefined ? {} : { origin });
      expect(headers.get('access-control-allow-origin')).toBe('*');
      expect(headers.get('access-control-allow-credentials')).toBeNull();
    },
  );

  it('lets a resource server verify a customer token without calling the service', async () => {
    const before = Math.floor(Date.now() / 1000);
    const { body } = await service.post(TOKEN, cookieBody());
    const { header, claims, isValid } = verified(body.access_token, response.body.keys);
    expect(isValid).toBe(true);
    expect(header).toEqual({ typ: 'at+jwt', alg: 'ES256', kid: response.body.keys[0].kid });
    expect(claims).toEqual({
      iss: 'https://auth.example',
      sub: body.entity_id,
      aud: 'customer-api',
      client_id: ACME_SITE,
      organization_id: ACME,
      gen: 0,
      gty: 'cookie',
      iat: expect.any(Number),
      exp: claims.iat + body.expires_in,
      jti: expect.stringMatching(/.{16}/),
    });
    expect(claims.iat).toBeGreaterThanOrEqual(before);
    expect(claims.iat).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000));
  });
});

describe('GET /.well-known/jwks.json while keys rotate', () => {
  const now = Math.floor(Date.now() / 1000);
  const retiring = { ...generateKey(now - 3_600), exp: now + 7_200 };
  const next = generateKey(now + 3_600);
  let database: TestDatabase;
  let service: TestService;
  beforeAll(async () => {
    database = await createTestDatabase();
    const path = join(database.folder, 'rotated.json');
    writeFileSync(path, JSON.stringify({ keys: [retiring, next] }));
    service = await startTestService({ database, environment: { SIGNING_KEYS_FILE: path } });
  });
  afterAll(async () => {
    await service?.stop();
    await database?.remove();
  });

  it('publishes a key before it signs, and the old key until its tokens have expired', async () => {
    const kids = async () => (await service.send('GET', JWKS)).body.keys.map(({ kid }: { kid: string }) => kid).sort();
    const token = async () => (await service.post(TOKEN, cookieBody())).body.access_token;
    const first = await token();
    expect(await kids()).toEqual([retiring.kid, next.kid].sort());
    expect(verified(first, [retiring]).isValid).toBe(true);

    service.clock.advance({ seconds: 3_600 });
    const second = await token();
    expect(await kids()).toEqual([retiring.kid, next.kid].sort());
    expect(verified(second, [next]).isValid).toBe(true);

    service.clock.advance({ seconds: 3_600 });
    expect(await kids()).toEqual([next.kid]);
    expect(verified(await token(), (await service.send('GET', JWKS)).body.keys).isValid).toBe(true);
  });
});

/** Verifies a token as a resource server does, with only the published keys. */
function verified(token: string, keys: PublicJwk[]) {
  const jws = token.slice(token.indexOf(':') + 1);
  const [header = '', payload = '', signature = ''] = jws.split('.');
  const read = (segment: string) => JSON.parse(Buffer.from(segment, 'base64url').toString());
  const jwk = keys.find(({ kid }) => kid === read(header).kid);
  if (!jwk) throw new Error('no published key has signed the token');
  const { kty, crv, x, y } = jwk;
  const key = createPublicKey({ key: { kty, crv, x, y }, format: 'jwk' });
  const signed = Buffer.from(`${header}.${payload}`);
  const isValid = verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'));
  return { header: read(header), claims: read(payload), isValid };
}
