import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TokenVerifier } from 'token-verifier';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { rotated, withoutKey } from '../../src/access-token/key-rotation.js';
import type { PrivateJwk } from '../../src/access-token/key-set.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { decisionOf, registryWithServers, verifierOf } from '../support/service-verifier.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { newCustomer } from '../support/transfers.js';

let service: TestService;
let feed: TcpProxy;
let keys: TcpProxy;
let verifiers: TokenVerifier[];
beforeEach(async () => {
  service = await startTestService({ registry: registryWithServers() });
  feed = await startTcpProxy(service.managementUrl);
  keys = await startTcpProxy(service.url);
  verifiers = [];
});
afterEach(async () => {
  for (const verifier of verifiers) verifier.close();
  await Promise.all([feed?.close(), keys?.close()]);
  await service?.stop();
});

function createVerifier(onStale: 'reject' | 'accept' = 'reject'): TokenVerifier {
  const urls = { feedUrl: feed.through(service.managementUrl), keysUrl: keys.through(service.url) };
  const verifier = verifierOf(service, {
    onStale,
    feedUrl: urls.feedUrl.replace(/\/$/, ''),
    keysUrl: urls.keysUrl.replace(/\/$/, ''),
  });
  verifiers.push(verifier);
  return verifier;
}

async function startVerifier(onStale: 'reject' | 'accept' = 'reject'): Promise<TokenVerifier> {
  const verifier = createVerifier(onStale);
  await verifier.ready();
  return verifier;
}

const newToken = async (): Promise<string> => (await newCustomer(service)).access_token;
const end = (token: string) => service.send('DELETE', TOKEN, bearer(token));
const eventually = (check: () => Promise<unknown>) => vi.waitFor(check, { timeout: 60_000, interval: 20 });

/** Changes the keys of the service, and waits until the service publishes these keys. */
async function changeKeys(change: (set: { keys: PrivateJwk[] }) => { keys: PrivateJwk[] }): Promise<PrivateJwk[]> {
  const path = join(service.database.folder, 'keys.json');
  const set = change(JSON.parse(readFileSync(path, 'utf8')));
  writeFileSync(path, JSON.stringify(set), { mode: 0o600 });
  const kids = set.keys.map(({ kid }) => kid);
  await eventually(async () => {
    const { body } = await service.send('GET', '/.well-known/jwks.json');
    expect(body.keys.map(({ kid }: PrivateJwk) => kid)).toEqual(kids);
  });
  return set.keys;
}

describe('token-verifier, while the feed is away', () => {
  it('accepts tokens for maxAgeSeconds, then none under reject, and knows what it missed when the feed is back', async () => {
    const [verifier, token, ended] = [await startVerifier(), await newToken(), await newToken()];
    await feed.cut();
    await end(ended);
    expect(await decisionOf(verifier, token)).toBe('valid');
    service.clock.advance({ seconds: 61 });
    for (const each of [token, ended]) expect(await decisionOf(verifier, each)).toBe('revocations_stale');
    const state = { revocations: 'stale', problem: 'unreachable' };
    await eventually(async () => expect(verifier.state).toMatchObject(state)); // The next request may be 200 ms away.
    await feed.restore();
    await eventually(async () => expect(await decisionOf(verifier, token)).toBe('valid'));
    await eventually(async () => expect(await decisionOf(verifier, ended)).toBe('revoked'));
  });

  it('accepts tokens under accept, except those that it knows to have ended, and catches up when the feed is back', async () => {
    const [verifier, token, before, during] = [
      await startVerifier('accept'),
      await newToken(),
      await newToken(),
      await newToken(),
    ];
    await end(before);
    await eventually(async () => expect(await decisionOf(verifier, before)).toBe('revoked'));
    feed.freeze();
    await end(during);
    service.clock.advance({ seconds: 61 });
    expect(verifier.state.revocations).toBe('stale');
    expect(await decisionOf(verifier, token)).toBe('valid');
    expect(await decisionOf(verifier, before)).toBe('revoked');
    expect(await decisionOf(verifier, during)).toBe('valid');
    await feed.restore();
    await eventually(async () => expect(await decisionOf(verifier, during)).toBe('revoked'));
    expect(verifier.state.revocations).toBe('current');
  });
});

describe('token-verifier, when the keys', () => {
  it('are rotated, accepts the tokens of the new key, and no token of a removed key', async () => {
    const verifier = await startVerifier('accept');
    const old = await newToken();
    expect(await decisionOf(verifier, old)).toBe('valid');
    const [added, previous] = await changeKeys((set) => rotated(set, service.clock.seconds(), 28_800));
    service.clock.advance({ seconds: Number(added?.nbf) - service.clock.seconds() });
    const token = await newToken();
    expect(await decisionOf(verifier, token)).toBe('valid');
    expect(await decisionOf(verifier, old)).toBe('valid');
    await changeKeys((set) => withoutKey(set, `${previous?.kid}`, service.clock.seconds()));
    service.clock.advance({ seconds: 300 });
    await eventually(async () => expect(await decisionOf(verifier, old)).toBe('unknown_key'));
    expect(await decisionOf(verifier, token)).toBe('valid');
  });

  it('are away, accepts tokens of known keys for an hour, and fetches the keys again afterwards', async () => {
    const verifier = await startVerifier('accept');
    const token = await newToken();
    expect(await decisionOf(verifier, token)).toBe('valid');
    await keys.cut();
    service.clock.advance({ seconds: 3_500 });
    expect(await decisionOf(verifier, token)).toBe('valid');
    service.clock.advance({ seconds: 200 });
    expect(await decisionOf(verifier, token)).toBe('keys_unavailable');
    await keys.restore();
    await eventually(async () => expect(await decisionOf(verifier, token)).toBe('valid'));
  });
  it('are unavailable at the start, is not ready until they can be fetched', async () => {
    await keys.cut();
    const verifier = createVerifier();
    await eventually(async () => expect(verifier.state.revocations).toBe('current'));
    const aborted = verifier.ready({ signal: AbortSignal.timeout(100) });
    await expect(aborted).rejects.toMatchObject({
      message: expect.stringContaining('the keys were not read'),
      cause: { name: 'TimeoutError' },
    });
    const token = await newToken();
    expect(await decisionOf(verifier, token)).toBe('keys_unavailable');
    await keys.restore();
    await verifier.ready();
    expect(await decisionOf(verifier, token)).toBe('valid');
  });
});
