import { describe, expect, it } from 'vitest';
import { VerifierTest } from './support/started-verifier.js';

const test = new VerifierTest();
const LATER = '9999-12-31T00:00:00.000Z';
const at = (seconds: number) => new Date(seconds * 1000).toISOString();
/** The second in which `test.token` issues tokens, and a generation, which is a time in milliseconds. */
const [ISSUED_AT, GENERATION] = [1_800_000_000, 1_800_000_000_123];

/** Resolves to `undefined` for a valid token, and to the code of the error otherwise. */
async function codeWith(entry: object, claims: object): Promise<string | undefined> {
  test.issuer.feed.add(entry);
  return codeOf(await test.start({ audience: ['customer-api', 'agent-api'] }), claims);
}

async function codeOf(verifier: { verify(token: string): Promise<unknown> }, claims: object) {
  return verifier.verify(await test.token({ gen: GENERATION, ...claims })).then(
    () => undefined,
    ({ code }) => code,
  );
}

const token = (value: string) => ({ kind: 'token', value, issued_before: LATER });
const session = (value: string, epoch: number) => ({ kind: 'session', value, epoch });
const subject = (value: string, generation: number) => ({ kind: 'subject', value, generation });
const client = (value: string, issued_before: string) => ({ kind: 'client', value, issued_before });

const ofSession = { sid: 'session-1', ep: 3 };
const ofAgent = { ...ofSession, aud: 'agent-api', gen: undefined };
const act = (changes: object = {}) => ({
  act: { sub: 'agent-1', sid: 'session-of-agent', ep: 3, client_id: 'crm', ...changes },
});
const ofTrustedIssuer = { sid: 'hash-of-a-token', ep: 0, iss: 'https://agents.example' };

describe('a token has ended (protocol §3.13)', () => {
  it.each<[string, object, object, string]>([
    ['its jti', token('token-1'), {}, 'revoked'],
    ['its jti, without a time', { kind: 'token', value: 'token-1' }, {}, 'revoked'],
    ['its jti, of an older issue time', { ...token('token-1'), issued_before: at(0) }, {}, 'revoked'],
    ['its session with a higher epoch', session('session-1', 4), ofSession, 'revoked'],
    ['its session, and it has no epoch', session('session-1', 1), { sid: 'session-1' }, 'revoked'],
    ['its session with a higher epoch, and it is an agent’s', session('session-1', 4), ofAgent, 'revoked'],
    ['the session of its agent', session('session-of-agent', 4), act(), 'ancestor_revoked'],
    [
      'the session of its agent, without an epoch',
      session('session-of-agent', 1),
      act({ ep: undefined }),
      'ancestor_revoked',
    ],
    ['the token of a trusted issuer', session('hash-of-a-token', 1), act(ofTrustedIssuer), 'ancestor_revoked'],
    ['its client, in the second of its iat', client('site', at(ISSUED_AT)), {}, 'client_revoked'],
    [
      'its organization, in the second of its iat',
      { ...client('organization-1', at(ISSUED_AT)), kind: 'organization' },
      { organization_id: 'organization-1' },
      'organization_suspended',
    ],
    ['its customer with a higher generation', subject('customer-1', GENERATION + 1), {}, 'customer_generation'],
    ['its customer, and it has no generation', subject('customer-1', 1), { gen: undefined }, 'customer_generation'],
  ])('if a revocation names %s', async (_, entry, claims, code) => {
    expect(await codeWith(entry, claims)).toBe(code);
  });

  it.each<[string, object, object]>([
    ['another token', token('token-2'), {}],
    ['a token with the id of its session', token('session-1'), ofSession],
    ['a token with the id of its customer', token('customer-1'), {}],
    ['a token with the id of the session of its agent', token('session-of-agent'), act()],
    ['a token with the id of its agent', token('agent-1'), act()],
    ['another session', session('session-2', 9), ofSession],
    ['its session with its epoch', session('session-1', 3), ofSession],
    ['its session with a lower epoch', session('session-1', 2), ofSession],
    ['a session, but it has none', session('token-1', 9), {}],
    ['the session of its agent with its epoch', session('session-of-agent', 3), act()],
    ['the session of its agent with a lower epoch', session('session-of-agent', 2), act()],
    ['a session with the id of its agent', session('agent-1', 9), act()],
    ['its client, before it was issued', client('site', at(ISSUED_AT - 0.001)), {}],
    ['the client of its agent', client('crm', LATER), act()],
    ['a client with the id of its customer', client('customer-1', LATER), {}],
    ['its customer with its generation', subject('customer-1', GENERATION), {}],
    ['its customer with a lower generation', subject('customer-1', GENERATION - 1), {}],
    ['a subject with the id of its agent', subject('agent-1', GENERATION + 1), act()],
  ])('but not if a revocation names %s', async (_, entry, claims) => {
    expect(await codeWith(entry, claims)).toBeUndefined();
  });

  it('by the strictest of several entries for the same value, in any order', async () => {
    const generations = [2, 7, 3].map((more) => subject('customer-1', GENERATION + more));
    const epochs = [2, 7, 3].map((epoch) => session('session-1', epoch));
    const times = [100, 300, 200].map((seconds) => client('site', at(seconds)));
    test.issuer.feed.add(...generations, ...epochs, ...times);
    const verifier = await test.start();
    const gen = GENERATION + 7;
    expect(await codeOf(verifier, { gen: gen - 1 })).toBe('customer_generation');
    expect(await codeOf(verifier, { gen })).toBeUndefined();
    expect(await codeOf(verifier, { gen, sid: 'session-1', ep: 6 })).toBe('revoked');
    expect(await codeOf(verifier, { gen, sid: 'session-1', ep: 7 })).toBeUndefined();
    expect(await codeOf(verifier, { gen, iat: 300 })).toBe('client_revoked');
    expect(await codeOf(verifier, { gen, iat: 301 })).toBeUndefined();
    expect(verifier.state.entries).toBe(3);
  });
});
