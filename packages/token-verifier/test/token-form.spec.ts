import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenVerifierError } from '../src/errors.js';
import { parseToken } from '../src/token-form.js';

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const HEADER = encode({ typ: 'at+jwt', alg: 'ES256', kid: 'key-1' });
const PAYLOAD = encode({ sub: 'customer-1' });
const SIGNATURE = Buffer.alloc(64, 7).toString('base64url');
const JWS = `${HEADER}.${PAYLOAD}.${SIGNATURE}`;

function codeOf(token: unknown): string | undefined {
  try {
    parseToken(token);
    return undefined;
  } catch (error) {
    if (!(error instanceof TokenVerifierError)) throw error;
    return error.code;
  }
}

describe('the form of a token', () => {
  it('is REGION:JWS or the bare JWS', () => {
    for (const token of [JWS, `eu:${JWS}`, `us-east-1:${JWS}`])
      expect(parseToken(token)).toEqual({ jws: JWS, kid: 'key-1' });
  });

  it.each<[unknown, string]>([
    ['', 'malformed'],
    [undefined, 'malformed'],
    [{ jws: JWS }, 'malformed'],
    [` ${JWS}`, 'malformed'],
    [`${JWS}\n`, 'malformed'],
    [`${JWS}.${JWS}`, 'malformed'],
    [`eu:us:${JWS}`, 'malformed'],
    [`${'r'.repeat(17)}:${JWS}`, 'malformed'],
    [`${HEADER}.${PAYLOAD}.`, 'malformed'],
    [`bm8.${PAYLOAD}.${SIGNATURE}`, 'malformed'],
    [`${JWS}${'A'.repeat(8_192)}`, 'malformed'],
    [`eu%3A${JWS}`, 'percent_encoded'],
    [`eu%3a${JWS}`, 'percent_encoded'],
    [`eu:${'a'.repeat(43)}`, 'not_an_access_token'],
    [`${HEADER}.${PAYLOAD}.${SIGNATURE}A`, 'invalid_signature'],
    [`${HEADER}.${PAYLOAD}.${SIGNATURE.slice(0, -1)}x`, 'invalid_signature'],
  ])('is not %j', (token, code) => {
    expect(codeOf(token)).toBe(code);
  });

  it('has one signature text only, although base64url has several texts for the same bytes', () => {
    const last = SIGNATURE.slice(-1);
    const others = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'].filter(
      (each) => each !== last,
    );
    const sameBytes = others
      .map((each) => `${SIGNATURE.slice(0, -1)}${each}`)
      .filter((text) => Buffer.from(text, 'base64url').equals(Buffer.alloc(64, 7)));
    expect(sameBytes.length).toBe(15);
    for (const text of sameBytes) expect(codeOf(`${HEADER}.${PAYLOAD}.${text}`)).toBe('invalid_signature');
  });

  it('is checked without another error than a TokenVerifierError, for any text', () => {
    const segment = fc.oneof(
      fc.string(),
      fc.base64String(),
      fc.json().map((text) => Buffer.from(text).toString('base64url')),
    );
    const text = fc.tuple(
      fc.constantFrom('', 'eu:', 'eu%3A', ':'),
      segment,
      segment,
      fc.constantFrom(SIGNATURE, 'x', ''),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          text.map(([region, ...segments]) => region + segments.join('.')),
        ),
        (token) => {
          codeOf(token);
        },
      ),
      { numRuns: 5_000 },
    );
  });

  it('requires the type, the algorithm and a kid, for any other fields in the header', () => {
    const header = fc.record(
      {
        typ: fc.constantFrom('at+jwt', 'JWT', 1),
        alg: fc.constantFrom('ES256', 'none', 'HS256'),
        kid: fc.constantFrom('a', 1),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(header, fc.dictionary(fc.string(), fc.jsonValue()), (known, others) => {
        const text = `${encode({ ...others, ...known })}.${PAYLOAD}.${SIGNATURE}`;
        const { typ = others.typ, alg = others.alg, kid = others.kid } = known;
        const isValid = typ === 'at+jwt' && alg === 'ES256' && typeof kid === 'string';
        expect(codeOf(text) === undefined).toBe(isValid);
      }),
    );
  });
});
