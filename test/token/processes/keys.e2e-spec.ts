import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { rotated, withoutKey } from '../../../src/access-token/key-rotation.js';
import { generateKey, type PrivateJwk, type PrivateKeySet } from '../../../src/access-token/key-set.js';
import { AgentBrowser, FOR_TOKEN } from '../../support/authorization-page.js';
import { runCli } from '../../support/processes.js';
import { ACME, ACME_SITE, testRegistry, writeRegistry } from '../../support/test-registry.js';
import { startTestService, type TestService } from '../../support/test-service.js';

const BODY = { grant_type: 'cookie', client_id: ACME_SITE, response_type: 'token', organization_id: ACME };

const keysPath = ({ database }: TestService) => join(database.folder, 'keys.json');
const readKeys = (path: string): PrivateKeySet => JSON.parse(readFileSync(path, 'utf8'));
const writeKeys = (path: string, set: unknown) =>
  writeFileSync(path, typeof set === 'string' ? set : JSON.stringify(set), { mode: 0o600 });

async function published(service: TestService): Promise<string[]> {
  const { body } = await service.send('GET', '/.well-known/jwks.json');
  return body.keys.map(({ kid }: { kid: string }) => kid);
}

async function metric({ managementUrl }: TestService, line: string): Promise<string | undefined> {
  const text = await (await fetch(`${managementUrl}/metrics`)).text();
  return text
    .split('\n')
    .find((each) => each.startsWith(line))
    ?.split(' ')
    .at(-1);
}

async function newToken(service: TestService): Promise<string> {
  const { body } = await service.post('/v2/customer/token', BODY);
  return body.access_token;
}

const kidOf = (token: string): string =>
  JSON.parse(Buffer.from(token.split(':')[1]?.split('.')[0] ?? '', 'base64url').toString()).kid;

const info = (service: TestService, token: string) =>
  service.send('GET', '/v2/customer/info', { authorization: `Bearer ${token}` });

/** Waits until the condition is true. The service checks its files every 2 s. */
const until = (condition: () => Promise<boolean>) => expect.poll(condition).toBe(true);

describe('protocol §3.16: a changed SIGNING_KEYS_FILE', () => {
  let service: TestService;
  let oldToken: string;
  let oldKid: string;
  beforeAll(async () => {
    service = await startTestService();
    oldToken = await newToken(service);
    oldKid = kidOf(oldToken);
  });
  afterAll(() => service.stop());

  it('that is malformed leaves the old keys in force and raises a metric until it is repaired', async () => {
    const good = readFileSync(keysPath(service), 'utf8');
    for (const bad of ['{', '{"keys":[]}', JSON.stringify({ keys: [generateKey(4_000_000_000)] })]) {
      writeKeys(keysPath(service), bad);
      await until(async () => (await metric(service, 'cas_file_invalid{file="SIGNING_KEYS_FILE"}')) === '1');
      expect(await published(service)).toEqual([oldKid]);
      expect((await info(service, oldToken)).status).toBe(200);
      writeKeys(keysPath(service), good);
      await until(async () => (await metric(service, 'cas_file_invalid{file="SIGNING_KEYS_FILE"}')) === '0');
    }
    expect(service.audit.filter(({ event }) => event === 'keys.changed')).toEqual([]);
  });

  it('takes effect without a restart: a new key is published before it signs, and old tokens stay valid', async () => {
    const set = rotated(readKeys(keysPath(service)), service.clock.seconds(), 28_800);
    const [added, old] = set.keys as [PrivateJwk, PrivateJwk];
    writeKeys(keysPath(service), set);
    await until(async () => (await published(service)).includes(added.kid));
    expect(service.audit.at(-1)).toMatchObject({ event: 'keys.changed', details: { added: [added.kid], removed: [] } });
    const before = await newToken(service);
    expect(kidOf(before)).toBe(oldKid);
    expect(await metric(service, 'cas_signing_keys{state="upcoming"}')).toBe('1');

    service.clock.advance({ seconds: added.nbf - service.clock.seconds() });
    expect(kidOf(await newToken(service))).toBe(added.kid);
    expect((await info(service, before)).status).toBe(200);
    expect(await published(service)).toEqual([added.kid, oldKid]);
    expect(await metric(service, 'cas_signing_keys{state="verifying"}')).toBe('1');

    service.clock.advance({ seconds: Number(old.exp) - service.clock.seconds() });
    expect(await published(service)).toEqual([added.kid]);
    expect((await info(service, before)).status).toBe(401);
  });

  it('that removes a key ends the tokens of that key at once', async () => {
    const token = await newToken(service);
    const kid = kidOf(token);
    writeKeys(keysPath(service), {
      keys: [...readKeys(keysPath(service)).keys, generateKey(service.clock.seconds() - 1)],
    });
    await until(async () => (await published(service)).length === 2);
    expect((await info(service, token)).status).toBe(200);
    writeKeys(keysPath(service), withoutKey(readKeys(keysPath(service)), kid, service.clock.seconds()));
    await until(async () => (await published(service)).length === 1);
    expect((await info(service, token)).status).toBe(401);
  });

  it('publishes a late key for the JWKS cache time before the key signs, if another key may sign', async () => {
    const signing = kidOf(await newToken(service));
    const late = generateKey(service.clock.seconds() - 1);
    writeKeys(keysPath(service), { keys: [late, ...readKeys(keysPath(service)).keys] });
    await until(async () => (await published(service)).includes(late.kid));
    expect(kidOf(await newToken(service))).toBe(signing);
    service.clock.advance({ seconds: 300 });
    expect(kidOf(await newToken(service))).toBe(signing);
    service.clock.advance({ seconds: 61 });
    expect(kidOf(await newToken(service))).toBe(late.kid);
  });

  it('lets the only usable key sign at once, even after no key could sign', async () => {
    const now = () => service.clock.seconds();
    const brief = { ...generateKey(now() - 1), exp: now() + 30 };
    writeKeys(keysPath(service), { keys: [brief] });
    await until(async () => (await published(service)).join() === brief.kid);
    expect(kidOf(await newToken(service))).toBe(brief.kid);
    service.clock.advance({ seconds: 31 });
    expect((await service.post('/v2/customer/token', BODY)).status).toBe(500);
    const next = generateKey(now() - 1);
    writeKeys(keysPath(service), { keys: [next] });
    await until(async () => (await published(service)).includes(next.kid));
    expect(kidOf(await newToken(service))).toBe(next.kid);
  });

  it('fails no request under load, and no verifier that caches the JWKS as long as it may', async () => {
    let jwks = createLocalJWKSet((await service.send('GET', '/.well-known/jwks.json')).body);
    let fetchedAt = service.clock.now();
    let running = true;
    let tokens = 0;
    const kids = new Set<string>();
    const caller = async () => {
      while (running) {
        const token = await newToken(service);
        if (service.clock.now() - fetchedAt > 300_000) {
          fetchedAt = service.clock.now();
          jwks = createLocalJWKSet((await service.send('GET', '/.well-known/jwks.json')).body);
        }
        await jwtVerify(token.slice(token.indexOf(':') + 1), jwks, { currentDate: new Date(service.clock.now()) });
        expect((await info(service, token)).status).toBe(200);
        kids.add(kidOf(token));
        tokens++;
      }
    };
    const callers = [caller(), caller(), caller(), caller()];
    try {
      for (let rotation = 0; rotation < 3; rotation++) {
        const set = rotated(readKeys(keysPath(service)), service.clock.seconds(), 28_800);
        writeKeys(keysPath(service), set);
        await until(async () => (await published(service)).includes(set.keys[0]?.kid as string));
        for (let minute = 0; minute < 16; minute++) {
          service.clock.advance({ seconds: 60 });
          await sleep(20);
        }
      }
    } finally {
      running = false;
    }
    await Promise.all(callers);
    expect(kids.size).toBe(4);
    expect(tokens).toBeGreaterThan(100);
  });
});

describe('protocol §6.4: the session of an agent', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.stop());

  it('survives a rotation of the signing keys', async () => {
    const browser = new AgentBrowser(service);
    await browser.signIn();
    const set = rotated(readKeys(keysPath(service)), service.clock.seconds(), 28_800);
    writeKeys(keysPath(service), set);
    await until(async () => (await published(service)).length === 2);
    expect((await browser.open(FOR_TOKEN)).status).toBe(302);
    service.clock.advance({ seconds: Number(set.keys[0]?.nbf) - service.clock.seconds() });
    expect((await browser.open(FOR_TOKEN)).status).toBe(302);
    const other = new AgentBrowser(service);
    expect((await other.open(FOR_TOKEN)).status).toBe(200);
  });
});

describe('protocol §8.1: a changed REGISTRY_FILE', () => {
  let service: TestService;
  let path: string;
  beforeAll(async () => {
    service = await startTestService();
    path = join(service.database.folder, 'registry.yaml');
  });
  afterAll(() => service.stop());

  const tokenStatus = async (client_id: string) =>
    (await service.post('/v2/customer/token', { ...BODY, client_id })).status;

  it('is applied while the service runs', async () => {
    const registry = testRegistry();
    registry.clients.push({ client_id: 'late-site', name: 'Late', client_type: 'web', organization_id: ACME });
    expect(await tokenStatus('late-site')).toBe(400);
    writeRegistry(path, registry);
    await until(async () => (await tokenStatus('late-site')) === 200);
  });

  it('that is invalid leaves the registry unchanged and raises a metric until it is repaired', async () => {
    const good = readFileSync(path, 'utf8');
    writeFileSync(path, `${good}\nnonsense: true\n`);
    await until(async () => (await metric(service, 'cas_file_invalid{file="REGISTRY_FILE"}')) === '1');
    expect(await tokenStatus('late-site')).toBe(200);
    expect(await tokenStatus(ACME_SITE)).toBe(200);
    writeFileSync(path, good);
    await until(async () => (await metric(service, 'cas_file_invalid{file="REGISTRY_FILE"}')) === '0');
  });
});

describe.skipIf(onMariadb)('protocol §9.3: keys on the command line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'keys-'));
  const path = join(folder, 'keys.json');
  const iso = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ';
  const listing = (state: string, expiry: string) => `[\\w-]{43} ${state}, signs from ${iso}, ${expiry}\n`;
  const now = () => Math.floor(Date.now() / 1000);

  it('rotate adds a key and lets the others expire, even if other variables are invalid', async () => {
    writeKeys(path, { keys: [generateKey(now() - 100)] });
    const { code, stdout, stderr } = await runCli(['keys', 'rotate', path], { PORT: 'x' });
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/ for another 86400 s after the new key signs/),
    });
    const lines = listing('upcoming', 'never expires') + listing('signing', `expires ${iso}`);
    expect(stdout).toMatch(new RegExp(`^${lines}$`));
    const [added, old] = readKeys(path).keys;
    expect(Number(old?.exp) - Number(added?.nbf)).toBeGreaterThanOrEqual(86_400);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(stdout).not.toContain(String(added?.d));
  });

  it('rotate fails the second time and changes nothing', async () => {
    const before = readFileSync(path, 'utf8');
    const { code, stdout, stderr } = await runCli(['keys', 'rotate', path]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^the file already has an upcoming key; nothing was changed\n$/);
    expect(readFileSync(path, 'utf8')).toBe(before);
  });

  it('rotate creates one new key when it runs three times at the same time', async () => {
    writeKeys(path, { keys: [generateKey(now() - 100)] });
    const ended = await Promise.all([1, 2, 3].map(() => runCli(['keys', 'rotate', path])));
    expect(ended.map(({ code }) => code).sort()).toEqual([0, 1, 1]);
    expect(readKeys(path).keys).toHaveLength(2);
  });

  it('list prints the state of each key, and no private part', async () => {
    const { code, stdout } = await runCli(['keys', 'list', path]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      new RegExp(`^${listing('upcoming', 'never expires')}${listing('signing', `expires ${iso}`)}$`),
    );
    for (const { d } of readKeys(path).keys) expect(stdout).not.toContain(d);
  });

  it('retire removes a key, unless no other key may sign', async () => {
    const [added, old] = readKeys(path).keys;
    const failed = await runCli(['keys', 'retire', path, String(old?.kid)]);
    expect(failed).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/no other key may sign now/) });
    expect(await runCli(['keys', 'retire', path, String(added?.kid)])).toMatchObject({ code: 0 });
    expect(readKeys(path).keys.map(({ kid }) => kid)).toEqual([old?.kid]);
  });

  it.each([
    ['rotate', '{', /must be JSON/],
    ['list', '{"keys":[{}]}', /keys\[0\]: must be an EC key/],
    ['rotate', undefined, /cannot be read/],
  ])('%s fails with exit code 1 and changes nothing if the file is %j', async (action, text, message) => {
    const file = join(folder, `invalid-${action}.json`);
    if (text !== undefined) writeKeys(file, text);
    const target = text === undefined ? join(folder, 'missing.json') : file;
    const { code, stdout, stderr } = await runCli(['keys', action, target]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(message);
    if (text !== undefined) expect(readFileSync(file, 'utf8')).toBe(text);
    chmodSync(folder, 0o700);
  });

  it.runIf(process.getuid?.() === 0)('rotate says what to do with a copy that belongs to root, as in the image', () => {
    const own = mkdtempSync(join(tmpdir(), 'keys-'));
    const copy = join(own, 'keys.json');
    writeKeys(copy, { keys: [generateKey(now() - 100)] });
    const cli = join(import.meta.dirname, '../../../dist/cli.js');
    const rotate = () =>
      spawnSync(process.execPath, [cli, 'keys', 'rotate', copy], { uid: 10_001, gid: 10_001, encoding: 'utf8' });
    chownSync(own, 10_001, 10_001);
    expect(rotate()).toMatchObject({
      status: 1,
      stderr:
        'FILE: it belongs to user 0, and this command runs as user 10001; ' +
        'run the command as user 0, or run first: chown 10001 FILE\n',
    });
    expect(readdirSync(own)).toEqual(['keys.json']);
    chownSync(copy, 10_001, 10_001);
    chownSync(own, 0, 0);
    chmodSync(own, 0o755);
    expect(rotate()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('copy the file into a folder of user'),
    });
    chownSync(own, 10_001, 10_001);
    expect(rotate()).toMatchObject({ status: 0 });
    rmSync(own, { recursive: true });
  });

  it.each(['keys', 'keys rotate', 'keys retire FILE', 'keys list a b'])(
    '%s is a usage error and exits with 2',
    async (line) => {
      expect(await runCli(line.split(' '))).toMatchObject({ code: 2, stdout: '' });
    },
  );
});
