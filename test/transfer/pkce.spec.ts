import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CODE_CHALLENGE, CODE_VERIFIER, isPkceSatisfied } from '../../src/oauth/pkce.js';

const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');
const UNRESERVED = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~'.split('');
const verifiers = fc.string({ unit: fc.constantFrom(...UNRESERVED), minLength: 43, maxLength: 128 });

describe('PKCE with S256 (RFC 7636)', () => {
  it('accepts only the verifier of the challenge', () => {
    fc.assert(
      fc.property(verifiers, verifiers, (verifier, other) => {
        const challenge = challengeOf(verifier);
        expect(isPkceSatisfied(challenge, verifier)).toBe(true);
        expect(isPkceSatisfied(challenge, other)).toBe(other === verifier);
        expect(isPkceSatisfied(challenge, challenge)).toBe(false);
        expect(isPkceSatisfied(challenge, undefined)).toBe(false);
        expect(isPkceSatisfied(null, verifier)).toBe(false);
      }),
    );
  });

  it('accepts a request with neither challenge nor verifier, and rejects an empty verifier', () => {
    expect(isPkceSatisfied(null, undefined)).toBe(true);
    expect(isPkceSatisfied(null, '')).toBe(false);
  });

  it.each([
    ['42 characters', 'x'.repeat(42)],
    ['129 characters', 'x'.repeat(129)],
    ['no characters', ''],
    ['a plus', `${'x'.repeat(42)}+`],
    ['a slash', `${'x'.repeat(42)}/`],
    ['padding', `${'x'.repeat(42)}=`],
    ['a space', `${'x'.repeat(42)} `],
    ['a line break at its end', `${'x'.repeat(43)}\n`],
    ['a letter beyond ASCII', `${'x'.repeat(42)}ä`],
  ])('rejects a verifier of %s, even if it matches the challenge', (_, verifier) => {
    expect(CODE_VERIFIER.test(verifier)).toBe(false);
    expect(isPkceSatisfied(challengeOf(verifier), verifier)).toBe(false);
  });

  it('rejects the method plain, where the challenge is the verifier', () => {
    const verifier = 'x'.repeat(43);
    expect(isPkceSatisfied(verifier, verifier)).toBe(false);
  });

  it.each(['x'.repeat(42), 'x'.repeat(44), `${'x'.repeat(42)}=`, `${'x'.repeat(42)}+`, `${'x'.repeat(43)}\n`, ''])(
    'rejects the challenge %j',
    (challenge) => {
      expect(CODE_CHALLENGE.test(challenge)).toBe(false);
    },
  );

  it('accepts the challenge of every verifier', () => {
    fc.assert(fc.property(verifiers, (verifier) => CODE_CHALLENGE.test(challengeOf(verifier))));
  });
});
