import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { TestClock } from '../../packages/conformance-kit/src/test-clock.js';
import { AccessTokens, type IssuableClaims } from '../../src/access-token/access-tokens.js';
import { generateKey, readKeySet, type SigningKey } from '../../src/access-token/key-set.js';
import type { SigningKeys } from '../../src/access-token/signing-keys.js';
import { VerifiedTokens } from '../../src/access-token/verified-tokens.js';
import { loadConfiguration } from '../../src/platform/configuration/load-configuration.js';

const verify = vi.spyOn(crypto, 'verify');
syncBuiltinESMExports(); // named imports of other modules then have the spy, too
afterAll(() => {
  verify.mockRestore();
  syncBuiltinESMExports();
});

const NOW_SECONDS = 1_900_000_000;
const TTL_SECONDS = 3_600;
const MAX_TOKENS = 5_000;
const CLAIMS: IssuableClaims = {
  sub: 'customer',
  aud: 'customer-api',
  client_id: 'site',
  organization_id: 'acme',
  gen: 0,
  ancestors: ['first'],
  act: { sub: 'agent', client_id: 'site' },
};

const clock = TestClock.stoppedAt(NOW_SECONDS * 1000);
const keyWith = (kid: string) => readKeySet(JSON.stringify({ keys: [{ ...generateKey(0), kid }] }))[0] as SigningKey;

let key: SigningKey;
let tokens: AccessTokens;
let token: string;
beforeEach(() => {
  clock.reset();
  key = keyWith('key');
  const keys = { current: () => key, keyByHeader: (header: string) => (header === key.header ? key : undefined) };
  const configuration = loadConfiguration({ AUTH_URL: 'https://auth.example' });
  tokens = new AccessTokens(configuration, keys as unknown as SigningKeys, clock);
  token = tokens.issue(CLAIMS, TTL_SECONDS);
  verify.mockClear();
});

const signatureChecks = () => verify.mock.calls.length;

describe('the signature of an access token', () => {
  it('is checked once for a token that is used again', () => {
    const first = tokens.inspect(token);
    expect(first.claims).toMatchObject(CLAIMS);
    expect(tokens.inspect(token)).toEqual(first);
    expect(signatureChecks()).toBe(1);
  });

  it('is checked again after the key file was read again, even if the key has the same kid', () => {
    tokens.inspect(token);
    key = { ...key };
    expect(tokens.inspect(token).inactiveReason).toBeUndefined();
    expect(signatureChecks()).toBe(2);
    key = keyWith('key');
    expect(tokens.inspect(token)).toEqual({ inactiveReason: 'invalid_signature' });
  });

  it('is not looked up for a token whose key was removed', () => {
    tokens.inspect(token);
    key = keyWith('other');
    const found = vi.spyOn(VerifiedTokens.prototype, 'find');
    expect(tokens.inspect(token)).toEqual({ inactiveReason: 'unknown_key' });
    expect(found).not.toHaveBeenCalled();
    found.mockRestore();
  });

  it('is checked for every altered form of a token that was verified before', () => {
    tokens.inspect(token);
    const [header, payload, signature] = token.split('.');
    const other = tokens.issue({ ...CLAIMS, sub: 'victim' }, TTL_SECONDS).split('.')[1];
    for (const altered of [
      `${header}.${other}.${signature}`,
      `${header}.${payload}.${signature?.slice(0, -8)}AAAAAAAA`,
      `${token}=`,
      `${header}.${payload}.`,
    ])
      expect(tokens.inspect(altered)).toEqual({ inactiveReason: 'invalid_signature' });
  });
});

describe('a token that was verified before', () => {
  it('is rejected after it has expired', () => {
    tokens.inspect(token);
    clock.advance({ seconds: TTL_SECONDS });
    expect(tokens.inspect(token)).toMatchObject({ inactiveReason: 'expired' });
  });

  it('is rejected while the clock is set back by more than 30 s before it was issued', () => {
    tokens.inspect(token);
    clock.advance({ seconds: -31 });
    expect(tokens.inspect(token)).toMatchObject({ inactiveReason: 'not_yet_valid' });
  });

  it('has claims that no request can change for the next one', () => {
    const { claims } = tokens.inspect(token);
    expect(Object.isFrozen(claims)).toBe(true);
    expect(Object.isFrozen(claims?.act)).toBe(true);
    expect(Object.isFrozen(claims?.ancestors)).toBe(true);
  });
});

describe('the memory of verified tokens', () => {
  const add = vi.spyOn(VerifiedTokens.prototype, 'add');
  beforeEach(() => void add.mockClear());
  afterAll(() => add.mockRestore());

  it('gets no token that is invalid or has expired', () => {
    tokens.inspect(`${token.slice(0, -8)}AAAAAAAA`);
    clock.advance({ seconds: TTL_SECONDS });
    tokens.inspect(token);
    expect(add).not.toHaveBeenCalled();
    clock.advance({ seconds: -1 });
    tokens.inspect(token);
    expect(add).toHaveBeenCalledOnce();
  });

  it('gets the hash of a token, and no part of its text', () => {
    tokens.inspect(token);
    expect(add).toHaveBeenCalledOnce();
    expect(add.mock.calls[0]?.[0]).toMatch(/^[0-9a-f]{64}$/);
    for (const segment of token.split('.')) expect(JSON.stringify(add.mock.calls)).not.toContain(segment);
  });

  it('is bounded, and drops the tokens that were not used for longest', () => {
    const verified = new VerifiedTokens();
    const claims = { ...CLAIMS, iss: '', iat: 0, exp: 0, jti: '' };
    for (let count = 0; count < 3 * MAX_TOKENS; count++) {
      verified.add(`token ${count}`, key, { ...claims });
      verified.find('token 0', key);
      expect(verified.size).toBeLessThanOrEqual(MAX_TOKENS);
    }
    expect(verified.find('token 0', key)).toBeDefined();
    expect(verified.find('token 1', key)).toBeUndefined();
    expect(verified.find(`token ${3 * MAX_TOKENS - 1}`, key)).toBeDefined();
    expect(verified.find(`token ${2 * MAX_TOKENS + MAX_TOKENS / 2 + 1}`, key)).toBeDefined();
  });
});
