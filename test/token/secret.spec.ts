import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { equalInConstantTime, randomSecret } from '../../src/platform/secret.js';

describe('a random secret', () => {
  it.each([
    ['hex', /^[0-9a-f]{64}$/],
    ['base64url', /^[A-Za-z0-9_-]{43}$/],
  ] as const)('has 32 bytes in %s', (encoding, shape) => {
    const secret = randomSecret(encoding);
    expect(secret).toMatch(shape);
    expect(Buffer.from(secret, encoding)).toHaveLength(32);
  });

  it('never repeats', () => {
    const secrets = Array.from({ length: 1_000 }, () => randomSecret('hex'));
    expect(new Set(secrets).size).toBe(secrets.length);
  });

  it('is equal only to exactly the same text', () => {
    const text = fc.string({ unit: 'binary' });
    fc.assert(
      fc.property(text, text, (one, other) => {
        expect(equalInConstantTime(one, one)).toBe(true);
        expect(equalInConstantTime(one, other)).toBe(one === other);
        expect(equalInConstantTime(one, `${one}0`)).toBe(false);
      }),
    );
  });
});
