import { chmodSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rotated, withoutKey } from '../../src/access-token/key-rotation.js';
import { generateKey, type PrivateJwk, type PrivateKeySet } from '../../src/access-token/key-set.js';
import { onMariadb } from '../../src/testing/test-database.js';
import { AgentBrowser, FOR_TOKEN } from '../support/authorization-page.js';
import { runCli } from '../support/processes.js';
import { ACME, ACME_SITE, testRegistry, writeRegistry } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';

const BODY = { grant_type: 'cookie', client_id: ACME_SITE, response_type: 'token', organization_id: ACME };
const SLOW = { timeout: 60_000 };

const keysPath = ({ database }: TestService) => join(database.folder, 'keys.json');
const readSet = (path: string): PrivateKeySet => JSON.parse(readFileSync(path, 'utf8'));
const writeSet = (path: string, set: unknown) =>
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

/** Until something is so; the files are looked at every 2 s. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let waited = 0; waited < 8_000; waited += 100) {
    if (await condition()) return;
    await sleep(100);
  }
  throw new Error('it did not come to pass');
}

describe('protocol §3.16: a changed SIGNING_KEYS_FILE', SLOW, () => {
  let service: TestService;
  let oldToken: string;
  let oldKid: string;
  beforeAll(async () => {
    service = await startTestService();
    oldToken = await newToken(service);
    oldKid = kidOf(oldToken);
  });
  afterAll(() => service.stop());

  it('that is malformed leaves the old keys in force, and an alarm metric rises until it is mended', async () => {
    const good = readFileSync(keysPath(service), 'utf8');
    for (const bad of ['{', '{"keys":[]}', JSON.stringify({ keys: [generateKey(4_000_000_000)] })]) {
      writeSet(keysPath(service), bad);
      await until(async () => (await metric(service, 'cas_file_faulty{file="SIGNING_KEYS_FILE"}')) === '1');
      expect(await published(service)).toEqual([oldKid]);
      expect((await info(service, oldToken)).status).toBe(200);
      writeSet(keysPath(service), good);
      await until(async () => (await metric(service, 'cas_file_faulty{file="SIGNING_KEYS_FILE"}')) === '0');
    }
    expect(service.audit.filter(({ event }) => event === 'keys.changed')).toEqual([]);
  });

  it('is in force without a restart: a new key is published before it signs, and old tokens verify until they expire', async () => {
    const set = rotated(readSet(keysPath(service)), service.clock.seconds(), 28_800);
    const [added, old] = set.keys as [PrivateJwk, PrivateJwk];
    writeSet(keysPath(service), set);
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

  it('without a key ends the tokens of that key at once', async () => {
    const token = await newToken(service);
    const kid = kidOf(token);
    writeSet(keysPath(service), {
      keys: [...readSet(keysPath(service)).keys, generateKey(service.clock.seconds() - 1)],
    });
    await until(async () => (await published(service)).length === 2);
    expect((await info(service, token)).status).toBe(200);
    writeSet(keysPath(service), withoutKey(readSet(keysPath(service)), kid, service.clock.seconds()));
    await until(async () => (await published(service)).length === 1);
    expect((await info(service, token)).status).toBe(401);
  });

  it('a key that comes late is published as long as verifiers keep the JWKS before it signs, if another may', async () => {
    const signing = kidOf(await newToken(service));
    const late = generateKey(service.clock.seconds() - 1);
    writeSet(keysPath(service), { keys: [late, ...readSet(keysPath(service)).keys] });
    await until(async () => (await published(service)).includes(late.kid));
    expect(kidOf(await newToken(service))).toBe(signing);
    service.clock.advance({ seconds: 300 });
    expect(kidOf(await newToken(service))).toBe(signing);
    service.clock.advance({ seconds: 61 });
    expect(kidOf(await newToken(service))).toBe(late.kid);
  });

  it('a key that is the only one that may sign does so at once, also where none could any more', async () => {
    const now = () => service.clock.seconds();
    const brief = { ...generateKey(now() - 1), exp: now() + 30 };
    writeSet(keysPath(service), { keys: [brief] });
    await until(async () => (await published(service)).join() === brief.kid);
    expect(kidOf(await newToken(service))).toBe(brief.kid);
    service.clock.advance({ seconds: 31 });
    expect((await service.post('/v2/customer/token', BODY)).status).toBe(500);
    const next = generateKey(now() - 1);
    writeSet(keysPath(service), { keys: [next] });
    await until(async () => (await published(service)).includes(next.kid));
    expect(kidOf(await newToken(service))).toBe(next.kid);
  });

  it('loses no request under load, and no verifier that keeps the JWKS for as long as it may', async () => {
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
        const set = rotated(readSet(keysPath(service)), service.clock.seconds(), 28_800);
        writeSet(keysPath(service), set);
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

describe('protocol §6.4: the session of an agent', SLOW, () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.stop());

  it('survives a rotation: before the new key signs, and after', async () => {
    const browser = new AgentBrowser(service);
    await browser.signIn();
    const set = rotated(readSet(keysPath(service)), service.clock.seconds(), 28_800);
    writeSet(keysPath(service), set);
    await until(async () => (await published(service)).length === 2);
    expect((await browser.open(FOR_TOKEN)).status).toBe(302);
    service.clock.advance({ seconds: Number(set.keys[0]?.nbf) - service.clock.seconds() });
    expect((await browser.open(FOR_TOKEN)).status).toBe(302);
    const other = new AgentBrowser(service);
    expect((await other.open(FOR_TOKEN)).status).toBe(200);
  });
});

describe('protocol §8.1: a changed REGISTRY_FILE', SLOW, () => {
  let service: TestService;
  let path: string;
  beforeAll(async () => {
    service = await startTestService();
    path = join(service.database.folder, 'registry.yaml');
  });
  afterAll(() => service.stop());

  const asks = async (client_id: string) => (await service.post('/v2/customer/token', { ...BODY, client_id })).status;

  it('is applied again while the service runs', async () => {
    const registry = testRegistry();
    registry.clients.push({ client_id: 'late-site', name: 'Late', client_type: 'web', organization_id: ACME });
    expect(await asks('late-site')).toBe(400);
    writeRegistry(path, registry);
    await until(async () => (await asks('late-site')) === 200);
  });

  it('that is faulty leaves the registry as it was, and an alarm metric rises until it is mended', async () => {
    const good = readFileSync(path, 'utf8');
    writeFileSync(path, `${good}\nnonsense: true\n`);
    await until(async () => (await metric(service, 'cas_file_faulty{file="REGISTRY_FILE"}')) === '1');
    expect(await asks('late-site')).toBe(200);
    expect(await asks(ACME_SITE)).toBe(200);
    writeFileSync(path, good);
    await until(async () => (await metric(service, 'cas_file_faulty{file="REGISTRY_FILE"}')) === '0');
  });
});

describe.skipIf(onMariadb)('protocol §9.3: keys on the command line', SLOW, () => {
  const folder = mkdtempSync(join(tmpdir(), 'keys-'));
  const path = join(folder, 'keys.json');
  const iso = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ';
  const listing = (state: string, expiry: string) => `[\\w-]{43} ${state}, signs from ${iso}, ${expiry}\n`;
  const now = () => Math.floor(Date.now() / 1000);

  it('rotate adds a key and lets the others expire, whatever the rest of the environment is', async () => {
    writeSet(path, { keys: [generateKey(now() - 100)] });
    const { code, stdout, stderr } = await runCli(['keys', 'rotate', path], { AGENT_TOKEN_TTL: '40000', PORT: 'x' });
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/as long as a token lives: 40000 s,/) });
    const lines = listing('upcoming', 'never expires') + listing('signing', `expires ${iso}`);
    expect(stdout).toMatch(new RegExp(`^${lines}$`));
    const [added, old] = readSet(path).keys;
    expect(Number(old?.exp) - Number(added?.nbf)).toBeGreaterThanOrEqual(40_000);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(stdout).not.toContain(String(added?.d));
  });

  it('rotate refuses a second time, and changes nothing', async () => {
    const before = readFileSync(path, 'utf8');
    const { code, stdout, stderr } = await runCli(['keys', 'rotate', path]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^a key that will sign is there already: nothing was changed\n$/);
    expect(readFileSync(path, 'utf8')).toBe(before);
  });

  it('two rotations at once make one new key', async () => {
    writeSet(path, { keys: [generateKey(now() - 100)] });
    const ended = await Promise.all([1, 2, 3].map(() => runCli(['keys', 'rotate', path])));
    expect(ended.map(({ code }) => code).sort()).toEqual([0, 1, 1]);
    expect(readSet(path).keys).toHaveLength(2);
  });

  it('list prints what each key is for, and nothing private', async () => {
    const { code, stdout } = await runCli(['keys', 'list', path]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      new RegExp(`^${listing('upcoming', 'never expires')}${listing('signing', `expires ${iso}`)}$`),
    );
    for (const { d } of readSet(path).keys) expect(stdout).not.toContain(d);
  });

  it('retire takes a key out, but not the one that signs', async () => {
    const [added, old] = readSet(path).keys;
    const refused = await runCli(['keys', 'retire', path, String(old?.kid)]);
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/no other key may sign now/) });
    expect(await runCli(['keys', 'retire', path, String(added?.kid)])).toMatchObject({ code: 0 });
    expect(readSet(path).keys.map(({ kid }) => kid)).toEqual([old?.kid]);
  });

  it.each([
    ['rotate', '{', /must be JSON/],
    ['list', '{"keys":[{}]}', /keys\[0\]: must be an EC key/],
    ['rotate', undefined, /cannot be read/],
  ])('%s refuses a file that is %j: exit 1, unchanged, no value told', async (action, text, message) => {
    const file = join(folder, `faulty-${action}.json`);
    if (text !== undefined) writeSet(file, text);
    const target = text === undefined ? join(folder, 'missing.json') : file;
    const { code, stdout, stderr } = await runCli(['keys', action, target]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(message);
    if (text !== undefined) expect(readFileSync(file, 'utf8')).toBe(text);
    chmodSync(folder, 0o700);
  });

  it.each(['keys', 'keys rotate', 'keys retire FILE', 'keys list a b'])('%s is a wrong use: exit 2', async (line) => {
    expect(await runCli(line.split(' '))).toMatchObject({ code: 2, stdout: '' });
  });
});
