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
    [`eu:${'f'.repeat(22)}.${'r'.repeat(43)}`, 'not_an_access_token'],
    [`${HEADER}.${PAYLOAD}.${SIGNATURE}A`, 'invalid_signature'],
    [`${HEADER}.${PAYLOAD}.${SIGNATURE.slice(0, -1)}x`, 'invalid_signature'],
  ])('is not %j', (token, code) => {
    expect(codeOf(token)).toBe(code);
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
});
