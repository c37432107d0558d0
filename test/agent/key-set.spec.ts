import type { RequestListener } from 'node:http';
import { errors } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TestClock } from '../../packages/conformance-kit/src/test-clock.js';
import { KeySet } from '../../src/oauth/key-set.js';
import { remoteKeys } from '../../src/oauth/key-sources.js';
import { OAuthError } from '../../src/oauth/oauth-error.js';
import type { Clock } from '../../src/platform/clock.js';
import { TestIssuer, UNUSABLE_RESPONSES } from '../support/test-issuer.js';

const FAIL: RequestListener = (_, response) => void response.writeHead(500).end();
const UNKNOWN = { alg: 'ES256', kid: 'unknown' };

let clock: TestClock;
let issuer: TestIssuer;
let keySet: KeySet;
beforeEach(async () => {
  clock = TestClock.stoppedAt(1_800_000_000_000);
  issuer = await TestIssuer.start();
  keySet = new KeySet(remoteKeys(String(issuer.trust().jwks_uri)), clock);
});
afterEach(() => issuer.stop());

const newestKeyHeader = () => ({ alg: 'ES256', kid: issuer.keys.at(-1)?.kid as string });
const expectFound = async () => expect((await keySet.getKey(newestKeyHeader())).type).toBe('public');
const expectUnknown = () => expect(keySet.getKey(UNKNOWN)).rejects.toBeInstanceOf(errors.JWKSNoMatchingKey);
const expectUnavailable = (header: object = newestKeyHeader()) =>
  expect(keySet.getKey(header)).rejects.toMatchObject({ code: 'temporarily_unavailable', status: 503 });

describe('the keys at a jwks_uri', () => {
  it('fetches the keys when the first key is needed, once for all concurrent callers', async () => {
    expect(issuer.requests).toBe(0);
    await Promise.all([...Array.from({ length: 20 }, () => expectFound()), expectUnknown(), expectUnknown()]);
    expect(issuer.requests).toBe(1);
  });

  it('caches keys for 10 minutes', async () => {
    await expectFound();
    clock.advance({ milliseconds: 599_999 });
    await expectFound();
    expect(issuer.requests).toBe(1);
    clock.advance({ milliseconds: 1 });
    await Promise.all(Array.from({ length: 20 }, () => expectFound()));
    expect(issuer.requests).toBe(2);
  });

  it('fetches the keys again for an unknown key id, at most once a minute', async () => {
    await expectFound();
    clock.advance({ milliseconds: 59_999 });
    for (let n = 0; n < 5; n++) await expectUnknown();
    expect(issuer.requests).toBe(1);
    clock.advance({ milliseconds: 1 });
    await Promise.all(Array.from({ length: 20 }, () => expectUnknown()));
    for (let n = 0; n < 5; n++) await expectUnknown();
    expect(issuer.requests).toBe(2);
  });

  it('finds a key that the issuer has added', async () => {
    await expectFound();
    await issuer.addKey();
    clock.advance({ milliseconds: 60_000 });
    await expectFound();
  });

  it('sends no request for one second to an issuer that failed', async () => {
    issuer.broken = FAIL;
    await Promise.all(Array.from({ length: 20 }, () => expectUnavailable()));
    clock.advance({ milliseconds: 999 });
    issuer.broken = undefined;
    for (let n = 0; n < 5; n++) await expectUnavailable();
    expect(issuer.requests).toBe(1);
    clock.advance({ milliseconds: 1 });
    await expectFound();
  });

  it.each(UNUSABLE_RESPONSES)('throws temporarily_unavailable if the issuer responds with %s', async (_, broken) => {
    issuer.broken = broken;
    await expectUnavailable();
    issuer.broken = undefined;
    clock.advance({ milliseconds: 1_000 });
    await expectFound();
  });

  it('uses the cached keys while the issuer fails, until they are 10 minutes old', async () => {
    await expectFound();
    issuer.broken = FAIL;
    clock.advance({ milliseconds: 599_999 });
    await expectUnavailable(UNKNOWN);
    await expectFound();
    clock.advance({ milliseconds: 1 });
    await expectUnavailable();
  });

  it('reports why the keys cannot be fetched, also during the pause', async () => {
    issuer.broken = FAIL;
    for (let n = 0; n < 2; n++) {
      const error = await keySet.getKey(newestKeyHeader()).catch((error: OAuthError) => error);
      expect(error).toMatchObject({ cause: expect.objectContaining({ message: expect.stringContaining('500') }) });
    }
  });

  it('extends neither the cache nor the pause when the clock is set back', async () => {
    await expectFound();
    clock.advance({ milliseconds: -3_600_000 });
    await expectFound();
    await expectFound();
    expect(issuer.requests).toBe(2);
    clock.advance({ milliseconds: 600_000 });
    issuer.broken = FAIL;
    await expectUnavailable();
    clock.advance({ milliseconds: -3_600_000 });
    issuer.broken = undefined;
    await expectFound();
  });

  it('ends the search for an unknown key also while the clock goes back', async () => {
    let time = clock.now();
    const backwards = { now: () => time-- } as Clock;
    keySet = new KeySet(remoteKeys(String(issuer.trust().jwks_uri)), backwards);
    await expectUnknown();
    expect(issuer.requests).toBe(2);
  });

  it('throws temporarily_unavailable only for a published key that cannot be used', async () => {
    issuer.keys.unshift({
      ...issuer.keys[0],
      kid: 'unusable',
      jwk: { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA', kid: 'unusable' },
    } as never);
    await expectUnavailable({ alg: 'ES256', kid: 'unusable' });
    await expectFound();
    expect(issuer.requests).toBe(1);
  });
});
