import crypto, { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { LRUCache } from 'lru-cache';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { TestClock } from '../../packages/conformance-kit/src/test-clock.js';
import {
  type AccessTokenClaims,
  AccessTokens,
  derSignature,
  type IssuableClaims,
  rawSignature,
} from '../../src/access-token/access-tokens.js';
import { INACTIVE_REASONS } from '../../src/access-token/inactive-reason.js';
import { generateKey, readKeySet } from '../../src/access-token/key-set.js';
import { SigningKeys } from '../../src/access-token/signing-keys.js';
import { Audit } from '../../src/platform/audit/audit.js';
import type { Configuration } from '../../src/platform/configuration/configuration.js';
import { loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { MetricsRegistry } from '../../src/platform/metrics.js';

type Jwk = ReturnType<typeof generateKey>;

const NOW_SECONDS = 1_900_000_000;
const TTL_SECONDS = 28_800;
const ISSUER = 'https://auth.example';
const P1363 = 'ieee-p1363' as const;
const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const CLAIMS: IssuableClaims = { sub: 'customer', aud: 'customer-api', client_id: 'site', organization_id: 'acme' };
const ISSUED_CLAIMS = { iss: ISSUER, ...CLAIMS, iat: NOW_SECONDS, exp: NOW_SECONDS + TTL_SECONDS, jti: 'one' };

const folder = mkdtempSync(join(tmpdir(), 'keys-'));
afterAll(() => rmSync(folder, { recursive: true }));

const clock = TestClock.stoppedAt(NOW_SECONDS * 1000);
/** Sets the clock to a time that the test's claims refer to. */
const setClock = (seconds: number) => clock.advance({ seconds: seconds - clock.seconds() });
beforeEach(() => clock.reset());

const key = generateKey(NOW_SECONDS - 1_000);
const issuedHeader = { typ: 'at+jwt', alg: 'ES256', kid: key.kid };
const { tokens } = withKeys([key]);

describe('a customer or agent access token', () => {
  it('is the region, a colon and an RFC 9068 JWT signed with ES256', () => {
    const [region, jws = ''] = tokens.issue(CLAIMS, TTL_SECONDS, 'one').split(':');
    const [header = '', payload = '', signature = ''] = jws.split('.');
    expect(region).toBe('dev');
    expect(decoded(header)).toEqual(issuedHeader);
    expect(decoded(payload)).toEqual(ISSUED_CLAIMS);
    const publicKey = { key: createPublicKey({ key: publicHalf(key), format: 'jwk' }), dsaEncoding: P1363 };
    expect(verify('sha256', Buffer.from(`${header}.${payload}`), publicKey, bytes(signature))).toBe(true);
  });

  it('has the claims that it was issued with when it is verified', () => {
    const claims = fc.record(
      {
        sub: fc.string({ unit: 'binary' }),
        aud: fc.constantFrom('customer-api' as const, 'agent-api' as const),
        client_id: fc.string(),
        organization_id: fc.uuid(),
        scope: fc.string(),
      },
      { requiredKeys: ['sub', 'aud', 'client_id', 'organization_id'] },
    );
    fc.assert(
      fc.property(claims, fc.integer({ min: 1, max: 31_536_000 }), fc.uuid(), (given, ttl, jti) => {
        const expected = { iss: ISSUER, ...given, iat: NOW_SECONDS, exp: NOW_SECONDS + ttl, jti };
        expect(claimsOf(tokens, tokens.issue(given, ttl, jti))).toEqual(expected);
      }),
    );
  });

  it('gets a unique jti if the caller gives none', () => {
    const ids = Array.from({ length: 100 }, () => claimsOf(tokens, tokens.issue(CLAIMS, TTL_SECONDS)).jti);
    expect(new Set(ids).size).toBe(100);
  });
});

describe('an altered access token is rejected', () => {
  const token = tokens.issue(CLAIMS, TTL_SECONDS);
  const [header = '', payload = '', signature = ''] = token.slice('dev:'.length).split('.');

  it('if any character is changed', () => {
    for (let at = 0; at < token.length; at++) expectRejected(replaced(token, at, nextInBase64(token[at])));
    // several last characters decode to the same bytes
    for (const last of BASE64URL.replace(token.at(-1) as string, '')) expectRejected(token.slice(0, -1) + last);
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }), (at, other) => {
        fc.pre(token[at] !== other);
        expectRejected(replaced(token, at, other));
      }),
    );
  });

  it('if it is cut off at any position', () => {
    for (let length = 0; length < token.length; length++) expectRejected(token.slice(0, length));
    for (let start = 1; start < token.length; start++) expectRejected(token.slice(start));
  });

  it('if anything is added before or after it', () => {
    for (const more of [...BASE64URL, '=', '.', ':', ' ', '\n', '\0', '%', 'ä', '.e30']) {
      expectRejected(token + more);
      expectRejected(more + token);
    }
  });

  it.each([
    ['signature and payload swapped', `dev:${header}.${signature}.${payload}`],
    ['no signature and no dot', `dev:${header}.${payload}`],
    ['a fourth part', `dev:${header}.${payload}.${signature}.`],
    ['another token’s payload', `dev:${header}.${otherPayload()}.${signature}`],
    ['a signature of zeros', `dev:${header}.${payload}.${Buffer.alloc(64).toString('base64url')}`],
    ['a signature in DER', `dev:${header}.${payload}.${signatureInDer(`${header}.${payload}`)}`],
    ['the region twice', `dev:dev:${header}.${payload}.${signature}`],
    ['nothing but the region and dots', 'dev:..'],
  ])('if it has %s', (_, altered) => {
    expectRejected(altered);
  });
});

describe('an access token with another header is rejected, even if the service signed it (RFC 8725)', () => {
  const attacker = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const publicPem = createPublicKey({ key: publicHalf(key), format: 'jwk' }).export({ type: 'spki', format: 'pem' });

  it('unless its header is the issued one', () => {
    expect(claimsOf(tokens, signed(issuedHeader))).toEqual(ISSUED_CLAIMS);
  });

  it.each([
    ['one with alg none', { ...issuedHeader, alg: 'none' }],
    ['one with alg HS256', { ...issuedHeader, alg: 'HS256' }],
    ['one with typ JWT', { ...issuedHeader, typ: 'JWT' }],
    ['one without typ', { alg: 'ES256', kid: key.kid }],
    ['one without kid', { typ: 'at+jwt', alg: 'ES256' }],
    ['one with an unknown kid', { ...issuedHeader, kid: generateKey(NOW_SECONDS).kid }],
    ['one with kid as an array', { ...issuedHeader, kid: [key.kid] }],
    ['one with jwk', { ...issuedHeader, jwk: publicHalf(key) }],
    ['one with jku', { ...issuedHeader, jku: 'https://auth.example/.well-known/jwks.json' }],
    ['one with crit', { ...issuedHeader, crit: ['exp'], exp: 1 }],
    ['one with its members in another order', { alg: 'ES256', typ: 'at+jwt', kid: key.kid }],
    ['one with white space', `${JSON.stringify(issuedHeader).slice(0, -1)} }`],
    ['one with a repeated member', JSON.stringify(issuedHeader).replace('{', '{"alg":"none",')],
    ['not JSON', 'at+jwt'],
    ['empty', ''],
  ])('if its header is %s', (_, header) => {
    expectRejected(signed(header));
  });

  it.each([
    ['the public key in PEM', publicPem as string],
    ['an empty text', ''],
  ])('if its signature is HS256 with %s as the secret', (_, secret) => {
    for (const header of [issuedHeader, { ...issuedHeader, alg: 'HS256' }]) {
      const text = `${encoded(header)}.${encoded(ISSUED_CLAIMS)}`;
      expectRejected(`dev:${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`);
    }
  });

  it.each([
    ['the kid of the service', issuedHeader],
    [
      'the kid of the service with a jwk of the attacker',
      { ...issuedHeader, jwk: attacker.publicKey.export({ format: 'jwk' }) },
    ],
    ['a jwk of the attacker alone', { typ: 'at+jwt', alg: 'ES256', jwk: attacker.publicKey.export({ format: 'jwk' }) }],
  ])('if an attacker signed it under %s', (_, header) => {
    expectRejected(signed(header, ISSUED_CLAIMS, attacker.privateKey));
  });
});

describe('the verification of the claims of an access token', () => {
  it('accepts a token until the second before exp, without clock skew', () => {
    const token = tokens.issue(CLAIMS, TTL_SECONDS);
    setClock(NOW_SECONDS + TTL_SECONDS - 1);
    expect(claimsOf(tokens, token).exp).toBe(NOW_SECONDS + TTL_SECONDS);
    setClock(NOW_SECONDS + TTL_SECONDS);
    expectRejected(token, tokens, 'expired');
  });

  it('accepts an iat 30 s ahead of the clock of the service, but not 31 s ahead', () => {
    const token = tokens.issue(CLAIMS, TTL_SECONDS);
    setClock(NOW_SECONDS - 30);
    expect(claimsOf(tokens, token).iat).toBe(NOW_SECONDS);
    setClock(NOW_SECONDS - 31);
    expectRejected(token, tokens, 'not_yet_valid');
  });

  it.each([
    ['the issuer with a slash', { ...ISSUED_CLAIMS, iss: `${ISSUER}/` }],
    ['no exp', { ...ISSUED_CLAIMS, exp: undefined }],
    ['exp as a text', { ...ISSUED_CLAIMS, exp: '9999999999x' }],
    ['no iat', { ...ISSUED_CLAIMS, iat: undefined }],
  ])('rejects a token with %s', (_, claims) => {
    expectRejected(signed(issuedHeader, claims));
  });
});

describe('signing keys', () => {
  const old = generateKey(NOW_SECONDS - 2_000);
  const next = generateKey(NOW_SECONDS + 100);

  it.each([[[old, key, next]], [[next, key, old]], [[key, next, old]]])(
    'are chosen for signing by the latest nbf that has passed, in any order in the file (%#)',
    (keys) => {
      expect(kidOf(withKeys(keys).tokens.issue(CLAIMS, TTL_SECONDS))).toBe(key.kid);
    },
  );

  it('verify tokens before their nbf, because the clock of another process may be ahead', () => {
    const ahead = signed({ ...issuedHeader, kid: next.kid }, ISSUED_CLAIMS, privateKeyOf(next));
    expect(claimsOf(withKeys([key, next]).tokens, ahead)).toEqual(ISSUED_CLAIMS);
  });

  it.each([
    ['none may sign yet', [generateKey(NOW_SECONDS + 1)]],
    ['all have expired', [{ ...key, exp: NOW_SECONDS }]],
  ])('prevent the start if %s', (_, keys) => {
    expect(() => withKeys(keys)).toThrow('SIGNING_KEYS_FILE: no key may sign now');
  });

  it('prevent the start if their file cannot be read', () => {
    const configuration = loadConfiguration({ SIGNING_KEYS_FILE: join(folder, 'missing.json') });
    expect(() => signingKeys(configuration)).toThrow(/^SIGNING_KEYS_FILE: the file cannot be read$/);
  });

  it('have a metric of the time until the last one expires, which is absent if one never expires', async () => {
    const secondsLeft = async (...keys: object[]) => {
      const metrics = new MetricsRegistry();
      signingKeys(configurationWith(keys), metrics);
      const values = (await metrics.getSingleMetric('cas_signing_key_seconds_left')?.get())?.values;
      return values?.map(({ value }) => value);
    };
    const [brief, longer] = [10, 20].map((seconds) => ({ ...generateKey(0), exp: clock.seconds() + seconds }));
    expect(await secondsLeft(brief as object, longer as object)).toEqual([20]);
    expect(await secondsLeft(brief as object, key)).toEqual([]);
  });

  it('are generated once in DATA_DIR for SQLite, readable by the owner only, with a log line', () => {
    const log = vi.spyOn(Logger.prototype, 'log').mockReturnValue();
    const configuration = loadConfiguration({ DATA_DIR: join(folder, 'data'), AUTH_URL: ISSUER });
    const token = new AccessTokens(configuration, signingKeys(configuration), clock).issue(CLAIMS, TTL_SECONDS);
    const again = new AccessTokens(configuration, signingKeys(configuration), clock);
    expect(claimsOf(again, token).sub).toBe('customer');
    const path = join(folder, 'data', 'signing-keys.json');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(log.mock.calls).toEqual([[`generated a signing key: ${path}`]]);
    log.mockRestore();
  });
});

describe('a key set', () => {
  const MARKER = 'MARKEDVALUE';
  const without = (member: keyof Jwk) => ({ ...key, [member]: undefined });

  it.each([
    ['no JSON', MARKER, /^must be JSON$/],
    ['JSON null', 'null', /at least one key/],
    ['a single key', JSON.stringify(key), /at least one key/],
    ['no keys', '{"keys":[]}', /at least one key/],
    ['a key that is null', '{"keys":[null]}', /^keys\[0\]: must be an EC key on P-256 for ES256$/],
    ['a key that is a text', JSON.stringify({ keys: [key, MARKER] }), /^keys\[1\]: must be an EC key/],
    ['an RSA key', setOf({ ...key, kty: 'RSA' }), /must be an EC key/],
    ['another curve', setOf({ ...key, crv: 'P-384' }), /must be an EC key/],
    ['another alg', setOf({ ...key, alg: 'ES384' }), /must be an EC key/],
    ['no x', setOf(without('x')), /^keys\[0\]: x and y are missing$/],
    ['a public key', setOf(without('d')), /^keys\[0\]: is not private: d is missing$/],
    ['no kid', setOf(without('kid')), /^keys\[0\]: kid must be/],
    ['a path as kid', setOf({ ...key, kid: `../${MARKER}` }), /^keys\[0\]: kid must be/],
    ['nbf as a text', setOf({ ...key, nbf: MARKER }), /^keys\[0\]: nbf and exp must be seconds since 1970$/],
    ['an exp that is its nbf', setOf({ ...key, exp: key.nbf }), /^keys\[0\]: exp must be after nbf$/],
    ['a key for encryption', setOf({ ...key, use: 'enc' }), /^keys\[0\]: use must be sig$/],
    ['a point that is not on the curve', setOf({ ...key, x: MARKER }), /^keys\[0\]: is not a point on the curve$/],
    ['another encoding of x', setOf({ ...key, x: sameBytes(key.x) }), /^keys\[0\]: x and y must be 43 characters/],
    ['another encoding of y', setOf({ ...key, y: sameBytes(key.y) }), /^keys\[0\]: x and y must be 43 characters/],
    ['padding of x', setOf({ ...key, x: `${key.x}=` }), /^keys\[0\]: x and y must be 43 characters/],
    ['the same kid twice', JSON.stringify({ keys: [key, key] }), /^two keys have the same kid$/],
    ['d of zeros', setOf({ ...key, d: 'A'.repeat(43) }), /^keys\[0\]: /],
    ['d of another key', setOf({ ...key, d: generateKey(NOW_SECONDS).d }), /^keys\[0\]: d does not belong to x and y$/],
  ])('with %s is rejected with an error that names the rule and no value', (_, text, rule) => {
    const error = thrownBy(() => readKeySet(text)) as Error;
    expect(error.message).toMatch(rule);
    for (const value of [MARKER, key.d, key.x, key.kid]) expect(error.message).not.toContain(value);
  });

  it('needs neither alg, nbf, exp nor use', () => {
    const { kty, crv, x, y, d, kid } = key;
    const [read] = readKeySet(setOf({ kty, crv, x, y, d, kid }));
    expect(read).toMatchObject({ nbf: 0, exp: Infinity, publicJwk: publicHalf(key) });
  });
});

describe('the memory of verified tokens', () => {
  const set = vi.spyOn(LRUCache.prototype, 'set');
  const verifySpy = vi.spyOn(crypto, 'verify');
  syncBuiltinESMExports(); // named imports of other modules then have the spy, too
  let token: string;
  beforeEach(() => {
    token = tokens.issue(
      { ...CLAIMS, sid: 'session', ep: 1, act: { sub: 'agent', sid: 'token', ep: 0, client_id: 'site' } },
      TTL_SECONDS,
    );
    for (const spy of [set, verifySpy]) spy.mockClear();
  });
  afterAll(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });

  it('saves the second check of a signature, but not that of an altered token', () => {
    const first = claimsOf(tokens, token);
    expect(claimsOf(tokens, token)).toEqual(first);
    expect(verifySpy).toHaveBeenCalledOnce();
    const [header, , signature] = token.split('.');
    for (const altered of [`${header}.${otherPayload()}.${signature}`, `${token.slice(0, -8)}AAAAAAAA`, `${token}=`])
      expectRejected(altered, tokens, 'invalid_signature');
  });

  it('has claims that no request can change for the next one', () => {
    const claims = claimsOf(tokens, token);
    for (const part of [claims, claims.act]) expect(Object.isFrozen(part)).toBe(true);
  });

  it('gets the hash of a valid token, and no part of its text', () => {
    expectRejected(`${token.slice(0, -8)}AAAAAAAA`);
    setClock(NOW_SECONDS + TTL_SECONDS);
    expectRejected(token);
    expect(set).not.toHaveBeenCalled();
    clock.reset();
    claimsOf(tokens, token);
    expect(set.mock.calls).toEqual([[expect.stringMatching(/^[0-9a-f]{64}$/), expect.anything()]]);
    for (const segment of token.split('.')) expect(JSON.stringify(set.mock.calls)).not.toContain(segment);
  });

  it('is bounded, and drops the tokens that were not used for longest', () => {
    claimsOf(tokens, token);
    const verified = set.mock.contexts[0] as LRUCache<string, object>;
    for (let count = 0; count < 15_000; count++) {
      verified.set(`token ${count}`, {});
      verified.get('token 0');
      expect(verified.size).toBeLessThanOrEqual(5_000);
    }
    const found = [0, 1, 10_000, 10_001, 14_999].map((count) => verified.get(`token ${count}`) !== undefined);
    expect(found).toEqual([true, false, false, true, true]);
  });
});

it('a signature from node:crypto keeps its two numbers when it is converted, for numbers of any size', () => {
  const number = fc.bigInt({ min: 1n, max: 2n ** 256n - 1n });
  const small = fc.bigInt({ min: 1n, max: 2n ** 20n });
  fc.assert(
    fc.property(fc.oneof(number, small), fc.oneof(number, small), (r, s) => {
      const raw = rawSignature(derOf(r, s)).toString('hex');
      expect([BigInt(`0x${raw.slice(0, 64)}`), BigInt(`0x${raw.slice(64)}`)]).toEqual([r, s]);
      expect(derSignature(rawSignature(derOf(r, s)))).toEqual(derOf(r, s));
    }),
  );
});

it('docs/observability.md lists every reason why a token is inactive, with its meaning', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/observability.md'), 'utf8');
  const [, section = ''] = /^### Inactive tokens\n(.*?)^## /ms.exec(page) ?? [];
  const rows = Array.from(section.matchAll(/^\| `(\w+)` \| (.+) \|$/gm), ([, word, meaning]) => [word, meaning]);
  expect(rows.slice(1)).toEqual(Object.entries(INACTIVE_REASONS));
});

function signingKeys(configuration: Configuration, metrics = new MetricsRegistry()): SigningKeys {
  return new SigningKeys(configuration, clock, new Audit({ write: () => undefined }, metrics), metrics);
}

function withKeys(keys: object[]) {
  const configuration = configurationWith(keys);
  return { tokens: new AccessTokens(configuration, signingKeys(configuration), clock) };
}

function configurationWith(keys: object[]): Configuration {
  const path = join(folder, `${Math.random()}.json`);
  writeFileSync(path, JSON.stringify({ keys }));
  return loadConfiguration({ AUTH_URL: ISSUER, SIGNING_KEYS_FILE: path });
}

function expectRejected(token: string, by: AccessTokens = tokens, reason: unknown = expect.any(String)): void {
  const { inactiveReason } = by.inspect(token);
  if (!inactiveReason) throw new Error(`${JSON.stringify(token)} is not rejected`);
  expect(inactiveReason).toEqual(reason);
}

/** The claims of a valid token. */
function claimsOf(by: AccessTokens, token: string): AccessTokenClaims {
  const { claims, inactiveReason } = by.inspect(token);
  if (inactiveReason) throw new Error(`${token} is rejected: ${inactiveReason}`);
  return claims;
}

function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

function signed(header: object | string, claims: object = ISSUED_CLAIMS, privateKey = privateKeyOf(key)): string {
  const text = `${encoded(header)}.${encoded(claims)}`;
  const signature = sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: P1363 });
  return `dev:${text}.${signature.toString('base64url')}`;
}

function signatureInDer(text: string): string {
  return sign('sha256', Buffer.from(text), privateKeyOf(key)).toString('base64url');
}

function otherPayload(): string {
  return tokens.issue({ ...CLAIMS, sub: 'victim' }, TTL_SECONDS).split('.')[1] as string;
}

function derOf(...numbers: bigint[]): Buffer {
  const encodedNumbers = numbers.map((number) => {
    const hex = number.toString(16);
    const magnitude = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex');
    const content = (magnitude[0] as number) >= 0x80 ? Buffer.concat([Buffer.alloc(1), magnitude]) : magnitude;
    return Buffer.concat([Buffer.from([0x02, content.length]), content]);
  });
  const content = Buffer.concat(encodedNumbers);
  return Buffer.concat([Buffer.from([0x30, content.length]), content]);
}

function privateKeyOf({ kty, crv, x, y, d }: Jwk) {
  return createPrivateKey({ key: { kty, crv, x, y, d }, format: 'jwk' });
}

function publicHalf({ kty, crv, x, y, kid, alg, use }: Jwk) {
  return { kty, crv, x, y, kid, alg, use };
}

function setOf(jwk: object): string {
  return JSON.stringify({ keys: [jwk] });
}

function kidOf(token: string): string {
  return decoded(token.slice('dev:'.length).split('.')[0] as string).kid;
}

function bytes(text: string): Buffer {
  return Buffer.from(text, 'base64url');
}

function decoded(segment: string) {
  return JSON.parse(bytes(segment).toString());
}

function encoded(value: object | string): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
}

function replaced(text: string, at: number, other: string): string {
  return text.slice(0, at) + other + text.slice(at + 1);
}

/** Another text for the bytes of a coordinate: the last two bits of its 43 characters are of no byte. */
function sameBytes(coordinate: string): string {
  return replaced(coordinate, 42, nextInBase64(coordinate[42]));
}

function nextInBase64(character: string | undefined): string {
  return BASE64URL[(BASE64URL.indexOf(character as string) + 1) % 64] as string;
}
