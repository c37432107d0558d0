import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { rotated } from '../../../src/access-token/key-rotation.js';
import { generateKey, type PrivateJwk, type PrivateKeySet } from '../../../src/access-token/key-set.js';
import { AgentBrowser, FOR_TOKEN } from '../../support/authorization-page.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { metricOf } from '../../support/management-api.js';
import { runProgram } from '../../support/processes.js';
import { PROJECT } from '../../support/project-files.js';
import { startTestService, type TestService } from '../../support/test-service.js';
import { infoStatus, newCustomer } from '../../support/transfers.js';

const CLI = join(PROJECT, 'dist/cli.js');
const keysPath = ({ database }: TestService) => join(database.folder, 'keys.json');
const readKeys = (path: string): PrivateKeySet => JSON.parse(readFileSync(path, 'utf8'));
const writeKeys = (path: string, set: unknown) =>
  writeFileSync(path, typeof set === 'string' ? set : JSON.stringify(set), { mode: 0o600 });

async function published(service: TestService): Promise<string[]> {
  const { body } = await service.send('GET', '/.well-known/jwks.json');
  return body.keys.map(({ kid }: { kid: string }) => kid);
}

const newToken = async (service: TestService) => (await newCustomer(service)).access_token;

const kidOf = (token: string): string =>
  JSON.parse(Buffer.from(token.split(':')[1]?.split('.')[0] ?? '', 'base64url').toString()).kid;

/** Waits until the condition is true. The service checks its files every 2 s. */
const until = (condition: () => Promise<boolean>) => expect.poll(condition).toBe(true);

/** The tests change its keys and move its clock one after another. */
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service?.stop());

describe('protocol §3.16: a changed SIGNING_KEYS_FILE', () => {
  let oldToken: string;
  let oldKid: string;
  beforeAll(async () => {
    oldToken = await newToken(service);
    oldKid = kidOf(oldToken);
  });

  it('that is malformed leaves the old keys in force and raises a metric until it is repaired', async () => {
    const good = readFileSync(keysPath(service), 'utf8');
    for (const bad of ['{', JSON.stringify({ keys: [generateKey(4_000_000_000)] })]) {
      writeKeys(keysPath(service), bad);
      await until(async () => (await metricOf(service, 'cas_file_invalid{file="SIGNING_KEYS_FILE"}')) === 1);
      expect(await published(service)).toEqual([oldKid]);
      expect(await infoStatus(service, oldToken)).toBe(200);
      writeKeys(keysPath(service), good);
      await until(async () => (await metricOf(service, 'cas_file_invalid{file="SIGNING_KEYS_FILE"}')) === 0);
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
    expect(await metricOf(service, 'cas_signing_keys{state="upcoming"}')).toBe(1);

    service.clock.advance({ seconds: added.nbf - service.clock.seconds() });
    expect(kidOf(await newToken(service))).toBe(added.kid);
    expect(await infoStatus(service, before)).toBe(200);
    expect(await published(service)).toEqual([added.kid, oldKid]);
    expect(await metricOf(service, 'cas_signing_keys{state="verifying"}')).toBe(1);

    service.clock.advance({ seconds: Number(old.exp) - service.clock.seconds() });
    expect(await published(service)).toEqual([added.kid]);
    expect(await infoStatus(service, before)).toBe(401);
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
    expect((await service.post(TOKEN, cookieBody())).status).toBe(500);
    const next = generateKey(now() - 1);
    writeKeys(keysPath(service), { keys: [next] });
    await until(async () => (await published(service)).includes(next.kid));
    expect(kidOf(await newToken(service))).toBe(next.kid);
  });

  it('fails no request under load, and no verifier that caches the JWKS as long as it may', async () => {
    let jwks = createLocalJWKSet((await service.send('GET', '/.well-known/jwks.json')).body);
    let fetchedAt = service.clock.now();
    let running = true;
    const kids = new Set<string>();
    const caller = async () => {
      while (running) {
        const token = await newToken(service);
        if (service.clock.now() - fetchedAt > 300_000) {
          fetchedAt = service.clock.now();
          jwks = createLocalJWKSet((await service.send('GET', '/.well-known/jwks.json')).body);
        }
        await jwtVerify(token.slice(token.indexOf(':') + 1), jwks, { currentDate: new Date(service.clock.now()) });
        expect(await infoStatus(service, token)).toBe(200);
        kids.add(kidOf(token));
      }
    };
    const callers = [caller(), caller(), caller(), caller()];
    try {
      for (let rotation = 0; rotation < 2; rotation++) {
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
    expect(kids.size).toBe(3);
  });
});

it('protocol §6.4: the session of an agent survives a rotation of the signing keys', async () => {
  const browser = new AgentBrowser(service);
  await browser.signIn();
  const set = rotated(readKeys(keysPath(service)), service.clock.seconds(), 28_800);
  writeKeys(keysPath(service), set);
  await until(async () => (await published(service)).includes(set.keys[0]?.kid as string));
  expect((await browser.open(FOR_TOKEN)).status).toBe(302);
  service.clock.advance({ seconds: Number(set.keys[0]?.nbf) - service.clock.seconds() });
  expect((await browser.open(FOR_TOKEN)).status).toBe(302);
  const other = new AgentBrowser(service);
  expect((await other.open(FOR_TOKEN)).status).toBe(200);
});

describe.skipIf(onMariadb)('protocol §9.3: keys on the command line', () => {
  const iso = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ';
  const listing = (state: string, expiry: string) => `[\\w-]{43} ${state}, signs from ${iso}, ${expiry}\n`;
  const now = () => Math.floor(Date.now() / 1000);
  const keys = (input: unknown, ...parameters: string[]) => {
    const text = typeof input === 'string' ? input : JSON.stringify(input);
    return runProgram(process.execPath, [CLI, 'keys', ...parameters], { env: { PORT: 'x' }, input: text });
  };
  const oneKey = () => ({ keys: [generateKey(now() - 100)] });

  it('rotate prints the set with a new key and lets the others expire, even if other variables are invalid', async () => {
    const { code, stdout, stderr } = await keys(oneKey(), 'rotate');
    const lines = listing('upcoming', 'never expires') + listing('signing', `expires ${iso}`);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(new RegExp(`^${lines}$`)) });
    const [added, old] = (JSON.parse(stdout) as PrivateKeySet).keys;
    expect(Number(old?.exp) - Number(added?.nbf)).toBeGreaterThanOrEqual(86_400);
    const listed = await keys(stdout, 'list');
    expect(listed).toMatchObject({ code: 0, stdout: stderr, stderr: '' });
    expect(stderr).not.toContain(String(added?.d));
    const again = await keys(stdout, 'rotate');
    expect(again).toEqual({ code: 1, stdout: '', stderr: 'the set already has an upcoming key\n' });
  });

  it('retire prints the set without a key, unless no other key may sign', async () => {
    const set = rotated(oneKey(), now(), 28_800);
    const [added, old] = set.keys;
    const failed = await keys(set, 'retire', String(old?.kid));
    expect(failed).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/no other key may sign now/) });
    const { code, stdout } = await keys(set, 'retire', String(added?.kid));
    expect({ code, kids: JSON.parse(stdout).keys.map(({ kid }: PrivateJwk) => kid) }).toEqual({
      code: 0,
      kids: [old?.kid],
    });
  });

  it.each<[string, string[]]>([
    ['rotate', ['', '{', '{"keys":[]}', 'MARKED']],
    ['list', ['MARKED']],
    ['retire x', ['MARKED']],
  ])('%s fails with exit code 1 and prints no set if its input is none', async (action, inputs) => {
    for (const input of inputs) {
      const { code, stdout, stderr } = await keys(input, ...action.split(' '));
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/^standard input: must be /);
      expect(stderr).not.toContain('MARKED');
    }
  });
});
