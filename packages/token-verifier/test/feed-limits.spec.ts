import type { RequestListener } from 'node:http';
import { describe, expect, it } from 'vitest';
import { eventually, VerifierTest } from './support/started-verifier.js';

const test = new VerifierTest();
const revoked = (value: string, changes: object = {}) => ({ kind: 'jti', value, ...changes });
const inSeconds = (seconds: number) => new Date(test.clock.now() + seconds * 1000).toISOString();

describe('the list of revocations', () => {
  it('deletes an entry a minute after its end', async () => {
    test.issuer.feed.add(
      revoked('token-1', { expires_at: inSeconds(100) }),
      revoked('token-2', { expires_at: inSeconds(500) }),
    );
    const verifier = await test.start();
    test.clock.advance(159);
    test.issuer.feed.add(revoked('token-3'));
    await eventually(() => expect(verifier.state.entries).toBe(3));
    test.clock.advance(61);
    test.issuer.feed.add(revoked('token-4'));
    await eventually(() => expect(verifier.state.entries).toBe(3));
    await expect(verifier.verify(await test.token({ jti: 'token-2' }))).rejects.toMatchObject({ code: 'revoked' });
  });

  it('is stale after the clock was set back to a time at which deleted entries were in force, and is read again', async () => {
    test.issuer.feed.add(revoked('token-1', { expires_at: inSeconds(100) }));
    const verifier = await test.start();
    const token = await test.token();
    test.clock.set(1_000);
    test.issuer.feed.add(revoked('token-2'), revoked('token-3'));
    await eventually(() => expect(verifier.state.entries).toBe(2)); // The entry for token-1 is deleted.
    test.clock.set(-1_000);
    expect(verifier.state).toMatchObject({ revocations: 'stale', problem: 'clock_set_back' });
    await expect(verifier.verify(token)).rejects.toMatchObject({ code: 'revocations_stale' });
    test.issuer.feed.add(revoked('token-4'));
    await eventually(() => expect(verifier.verify(token)).rejects.toMatchObject({ code: 'revoked' }));
    await eventually(() => expect(verifier.state).toMatchObject({ revocations: 'current', entries: 4 }));
  });

  it('stays current after the clock was set back by less than a minute', async () => {
    test.issuer.feed.add(revoked('token-1'));
    const verifier = await test.start();
    test.clock.set(-59);
    expect(verifier.state.revocations).toBe('current');
  });

  it('is stale while it has not enough room for all entries, and applies those that it has', async () => {
    test.issuer.feed.add(
      ...['token-1', 'token-2', 'token-3'].map((jti) => revoked(jti, { expires_at: inSeconds(100) })),
    );
    const verifier = await test.start({ ...test.revocations({ maxEntries: 2, onStale: 'accept' }) });
    expect(verifier.state).toMatchObject({ revocations: 'stale', problem: 'too_many_entries', entries: 2 });
    await expect(verifier.verify(await test.token({ jti: 'token-2' }))).rejects.toMatchObject({ code: 'revoked' });
    test.issuer.feed.add(revoked('token-2'));
    test.clock.advance(161);
    test.issuer.feed.add(revoked('token-4'));
    await eventually(() => expect(verifier.state).toMatchObject({ revocations: 'current', entries: 2 }));
  });
});

describe('the requests to the feed', () => {
  it('pause as long as Retry-After says', async () => {
    const verifier = await test.start();
    test.issuer.feed.handler = (_, response) => void response.writeHead(429, { 'Retry-After': '3' }).end();
    test.issuer.feed.add(revoked('token-1'));
    await eventually(() => expect(verifier.state.problem).toBe('error_response'));
    const before = test.issuer.feed.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(test.issuer.feed.requests.length).toBe(before);
  });

  it.each([true, false])('pause also if the service never waits, and the list is complete: %s', async (complete) => {
    const body = JSON.stringify({ revocations: [], cursor: 'x', complete });
    test.issuer.feed.handler = (_, response) => void response.end(body);
    const verifier = test.create();
    await eventually(() => expect(test.issuer.feed.requests.length).toBeGreaterThan(1));
    expect(verifier.state.revocations).toBe(complete ? 'current' : 'starting');
    const before = test.issuer.feed.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(test.issuer.feed.requests.length - before).toBeLessThan(4);
  });

  it.each<[string, RequestListener]>([
    ['a response has more than 16 MiB', (_, response) => void response.end(' '.repeat(16 * 1024 * 1024 + 1))],
    ['a response is not JSON', (_, response) => void response.end('<html>')],
  ])('do not follow each other without a pause if %s', async (_, handler) => {
    test.issuer.feed.handler = handler;
    const verifier = test.create();
    await eventually(() =>
      expect(verifier.state).toMatchObject({ revocations: 'starting', problem: 'malformed_response' }),
    );
    expect(test.issuer.feed.requests.length).toBeLessThan(4);
  });

  it('end if the service does not respond, and so do those for the keys', async () => {
    let aborted = 0;
    const hang: RequestListener = (_, response) => void response.on('close', () => (aborted += 1));
    test.issuer.jwks = hang;
    test.issuer.feed.handler = hang;
    const verifier = test.create(test.revocations({ onStale: 'accept' }));
    await expect(verifier.verify(await test.token())).rejects.toMatchObject({ code: 'keys_unavailable' });
    await eventually(() => expect(verifier.state.problem).toBe('unreachable'));
    await eventually(() => expect(aborted).toBeGreaterThanOrEqual(2));
  });
});
