import { describe, expect, it } from 'vitest';
import { VerifierTest } from './support/started-verifier.js';

const test = new VerifierTest();
const LATER = '9999-12-31T00:00:00.000Z';
const at = (seconds: number) => new Date(seconds * 1000).toISOString();

/** Resolves to `undefined` for a valid token, and to the code of the error otherwise. */
async function codeWith(entry: object, claims: object): Promise<string | undefined> {
  test.issuer.feed.add(entry);
  return codeOf(await test.start(), claims);
}

async function codeOf(verifier: { verify(token: string): Promise<unknown> }, claims: object) {
  return verifier.verify(await test.token(claims)).then(
    () => undefined,
    ({ code }) => code,
  );
}

const act = (changes: object = {}) => ({ act: { sub: 'agent-1', client_id: 'crm', gen: 3, ...changes } });
const jti = (value: string) => ({ kind: 'jti', value, issued_before: LATER });
const family = (value: string) => ({ kind: 'family', value, issued_before: LATER });

describe('a token has ended (protocol §3.13)', () => {
  it.each<[string, object, object, string]>([
    ['its jti, of an older issue time', { ...jti('token-1'), issued_before: at(0) }, {}, 'revoked'],
    ['its jti as a family', family('token-1'), {}, 'family_revoked'],
    ['its family', family('family-1'), { jti: 'family-1.token-1' }, 'family_revoked'],
    ['the id of its family as a jti', jti('family-1'), { jti: 'family-1.token-1' }, 'family_revoked'],
    ['an ancestor’s family', family('family-0'), { ancestors: ['family-0', 'family-0.token'] }, 'ancestor_revoked'],
    [
      'its customer, without gen',
      { kind: 'subject', value: 'customer-1', generation: 1 },
      { gen: undefined },
      'customer_generation',
    ],
  ])('if a revocation names %s', async (_, entry, claims, code) => {
    expect(await codeWith(entry, claims)).toBe(code);
  });

  it.each<[string, object, object]>([
    ['another token', jti('token-2'), {}],
    ['another token of its family', jti('family-1.token-2'), { jti: 'family-1.token-1' }],
    ['a token with the name of its customer', jti('customer-1'), {}],
    ['its client, before it was issued', { kind: 'client', value: 'site', issued_before: at(1_799_999_999) }, {}],
    ['the client of its agent', { kind: 'client', value: 'crm', issued_before: at(1_900_000_000) }, act()],
    ['a client with the name of its customer', { kind: 'client', value: 'customer-1', issued_before: LATER }, {}],
    ['its customer with its generation', { kind: 'subject', value: 'customer-1', generation: 1 }, {}],
    ['its customer with a lower generation', { kind: 'subject', value: 'customer-1', generation: 0 }, {}],
    ['its agent with its generation', { kind: 'subject', value: 'agent-1', generation: 3 }, act()],
    [
      'an agent of this service, but its agent is of a trusted issuer',
      { kind: 'subject', value: 'agent-1', generation: 9 },
      act({ gen: undefined, iss: 'https://agents.example' }),
    ],
  ])('but not if a revocation names %s', async (_, entry, claims) => {
    expect(await codeWith(entry, claims)).toBeUndefined();
  });

  it('by the strictest of several entries for the same value, in any order', async () => {
    const generations = [2, 7, 3].map((generation) => ({ kind: 'subject', value: 'customer-1', generation }));
    const times = [100, 300, 200].map((seconds) => ({ kind: 'client', value: 'site', issued_before: at(seconds) }));
    test.issuer.feed.add(...generations, ...times);
    const verifier = await test.start();
    expect(await codeOf(verifier, { gen: 6 })).toBe('customer_generation');
    expect(await codeOf(verifier, { gen: 7 })).toBeUndefined();
    expect(await codeOf(verifier, { gen: 7, iat: 300 })).toBe('client_revoked');
    expect(await codeOf(verifier, { gen: 7, iat: 301 })).toBeUndefined();
    expect(verifier.state.entries).toBe(2);
  });
});
