import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  accountToken,
  asserting,
  CLUSTER_CLIENT,
  ownAssertion,
  registryWithKeys,
  revoke,
  SIGNING_CLIENT,
} from '../support/client-assertions.js';
import { expectInvalidRequest, expectUnavailable } from '../support/expect-error.js';
import { privateKey, TestIssuer, UNUSABLE_RESPONSES } from '../support/test-issuer.js';
import type { TestResponse } from '../support/test-service.js';
import { serviceOfTest, type UsedService } from '../support/use-service.js';

const realTimeout = AbortSignal.timeout.bind(AbortSignal);

let own: TestIssuer;
let cluster: TestIssuer;
let folder: string;
let service: UsedService;
beforeEach(async () => {
  [own, cluster] = await Promise.all([TestIssuer.start(), TestIssuer.start()]);
  folder = mkdtempSync(join(tmpdir(), 'key-sets-'));
  // An issuer has one second to respond, which a busy machine can exceed. An issuer that should respond gets a minute.
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => realTimeout(cluster.broken ? ms : 60 * ms));
});
afterEach(async () => {
  await Promise.all([own.stop(), cluster.stop()]);
  rmSync(folder, { recursive: true });
});

async function start(location: object, environment: Record<string, string> = { JWKS_DIR: folder }): Promise<void> {
  service = await serviceOfTest({ registry: registryWithKeys(own, cluster, location), environment });
}

/** Authenticates by a token that the newest key of the cluster has signed. */
async function send(header: object = {}): Promise<TestResponse> {
  const token = await accountToken(cluster, service.clock.now(), {}, header);
  return revoke(service, asserting(CLUSTER_CLIENT, token));
}
const status = async (header: object = {}) => (await send(header)).status;

describe('keys at a jwks_uri', () => {
  beforeEach(() => start({ jwks_uri: cluster.trust().jwks_uri }));

  it('that rotate are known a minute later, without a restart', async () => {
    expect(await status()).toBe(200);
    await cluster.addKey();
    expect(await status()).toBe(401);
    service.clock.advance({ seconds: 61 });
    expect(await status()).toBe(200);
    cluster.keys.pop();
    service.clock.advance({ seconds: 601 });
    expect([await status(), await status({ kid: 'key-2' })]).toEqual([200, 401]);
  });

  it('are not fetched for a text that cannot be an assertion, or for another entry', async () => {
    for (const assertion of ['x', 'e30.e30.AAAA', await accountToken(cluster, 0, {}, { typ: 'at+jwt' })])
      await revoke(service, asserting(CLUSTER_CLIENT, assertion));
    await revoke(service, asserting(CLUSTER_CLIENT, await accountToken(cluster, service.clock.now(), { iss: 'x' })));
    await revoke(service, asserting(SIGNING_CLIENT, await accountToken(cluster, service.clock.now())));
    await revoke(service, asserting('unknown', await accountToken(cluster, service.clock.now())));
    expect(cluster.requests).toBe(0);
  });

  it.each(UNUSABLE_RESPONSES)('cause 503 while the issuer responds with %s', async (_, broken) => {
    cluster.broken = broken;
    expectUnavailable(await send());
    cluster.broken = undefined;
    service.clock.advance({ seconds: 1 });
    expect(await status()).toBe(200);
  });

  it('that the issuer never sends make no other request wait', async () => {
    let isAsked: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    cluster.broken = () => isAsked();
    vi.mocked(AbortSignal.timeout).mockImplementation(() => new AbortController().signal);
    let isDone = false;
    const waiting = Array.from({ length: 50 }, () => send().finally(() => (isDone = true)));
    await asked;
    const assertion = await ownAssertion(own, service.clock.now());
    expect((await revoke(service, asserting(SIGNING_CLIENT, assertion))).status).toBe(200);
    expect((await service.visit()).status).toBe(200);
    expect(isDone).toBe(false);
    expect(cluster.requests).toBe(1);
    await cluster.stop();
    for (const response of await Promise.all(waiting)) expectUnavailable(response);
  });
});

describe('keys in a jwks_file', () => {
  const location = { jwks_file: 'cluster.json' };
  const path = () => join(folder, 'cluster.json');
  const write = (text = JSON.stringify({ keys: cluster.keys.map(({ jwk }) => jwk) })) => writeFileSync(path(), text);
  const waitForReading = () => service.clock.advance({ seconds: 3 });

  it('that are replaced are in force within 2 s, and removed ones are not', async () => {
    write();
    await start(location);
    expect(await status()).toBe(200);
    await cluster.addKey();
    cluster.keys.shift();
    write();
    waitForReading();
    expect([await status(), await status({ kid: 'key-1' })]).toEqual([200, 401]);
  });

  it('are followed through the links by which a cluster mounts them', async () => {
    const publish = (name: string) => {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, 'cluster.json'), JSON.stringify({ keys: cluster.keys.map(({ jwk }) => jwk) }));
      symlinkSync(name, join(folder, 'next'));
      renameSync(join(folder, 'next'), join(folder, '..data'));
    };
    publish('..1');
    symlinkSync('..data/cluster.json', path());
    await start(location);
    expect(await status()).toBe(200);
    await cluster.addKey();
    publish('..2');
    waitForReading();
    expect(await status()).toBe(200);
  });

  it.each<[string, () => void]>([
    ['is gone', () => rmSync(path())],
    ['is empty', () => write('')],
    ['is half written', () => write('{"keys":[')],
    ['is no key set', () => write('[]')],
    ['has a private key', () => write(JSON.stringify({ keys: [privateKey('key-1')] }))],
    ['is larger than 64 KiB', () => write(`{"keys":[]}${' '.repeat(65_536)}`)],
    ['is a folder', () => [rmSync, mkdirSync].forEach((change) => void change(path()))],
    ['is a named pipe', () => [rmSync(path()), execFileSync('mkfifo', [path()])]],
  ])('stay in force while the file %s, and cause 503 after a restart', async (_, breakFile) => {
    write();
    await start(location);
    expect(await status()).toBe(200);
    breakFile();
    waitForReading();
    expect(await status()).toBe(200);
    await start(location);
    expectUnavailable(await send());
    rmSync(path(), { recursive: true, force: true });
    write();
    waitForReading();
    expect(await status()).toBe(200);
  });

  it('do not stay in force if the file has an empty set', async () => {
    write();
    await start(location);
    expect(await status()).toBe(200);
    write('{"keys":[]}');
    waitForReading();
    expect(await status()).toBe(401);
  });

  it('and keys in the entry may be the bundle of a SPIFFE trust domain, whose certificates count for nothing', async () => {
    await cluster.addKey();
    const [certified, jwk] = cluster.keys.map((key) => key.jwk) as [object, object];
    const bundle = [
      { ...certified, use: 'x509-svid', kid: undefined, x5c: ['AA'] },
      { ...certified, use: 'x509-svid' },
      { ...jwk, use: 'jwt-svid' },
    ];
    write(JSON.stringify({ keys: bundle, spiffe_sequence: 1 }));
    for (const keys of [location, { jwks: { keys: bundle } }]) {
      await start(keys);
      expect(await status()).toBe(200);
      const [first] = cluster.keys;
      const byOther = await accountToken(
        { ...cluster, sign: (...[now, claims, header]) => cluster.sign(now, claims, header, first) } as TestIssuer,
        service.clock.now(),
      );
      expect((await revoke(service, asserting(CLUSTER_CLIENT, byOther))).status).toBe(401);
    }
  });

  it('are rejected in an entry while the service has no JWKS_DIR, and cause 503 if it was removed later', async () => {
    write();
    await start(location);
    const { database } = service;
    service = await serviceOfTest({ database, environment: {} });
    expectUnavailable(await send());
    const federated = { issuer: 'https://x.example', subject: 'x', ...location };
    const changed = await service.admin('PATCH', `/admin/clients/${CLUSTER_CLIENT}`, { federated });
    expectInvalidRequest(changed, 'federated.jwks_file: the service has no JWKS_DIR');
  });
});
