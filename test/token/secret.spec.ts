import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { equalInConstantTime, randomSecret, sha256 } from '../../src/platform/secret.js';

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

  it.each([
    ['', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ['abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
  ])('is stored as SHA-256 in lower-case hex: %j', (text, hash) => {
    expect(sha256(text)).toBe(hash);
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
