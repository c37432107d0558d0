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
let verifier: TokenVerifier;
beforeEach(async () => {
  service = await startTestService({ registry: registryWithServers() });
  feed = await startTcpProxy(service.managementUrl);
});
afterEach(async () => {
  verifier?.close();
  await feed?.close();
  await service?.stop();
});

async function startVerifier(onStale: 'reject' | 'accept' = 'reject'): Promise<TokenVerifier> {
  const feedUrl = feed.through(service.managementUrl).replace(/\/$/, '');
  verifier = verifierOf(service, { onStale, feedUrl });
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
});
