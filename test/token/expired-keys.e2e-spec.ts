import { createHmac, hkdfSync, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { generateKey } from '../../src/access-token/key-set.js';
import { AgentBrowser, FOR_TOKEN, formOf, redirected } from '../support/authorization-page.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { ACME_AGENT } from '../support/test-registry.js';
import { agentSessionsIn } from '../support/transfers.js';
import { serviceOfTest, type UsedService, useService } from '../support/use-service.js';

type Jwk = ReturnType<typeof generateKey>;

const HOUR_SECONDS = 3_600;
const DAY_MS = 86_400_000;
const START_SECONDS = Math.floor(Date.now() / 1000);

const folder = mkdtempSync(join(tmpdir(), 'expired-keys-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The key that an attacker has. It signed until the next key replaced it, and expires in an hour. */
const old = { ...generateKey(START_SECONDS - DAY_MS / 1000), exp: START_SECONDS + HOUR_SECONDS };
const current = generateKey(START_SECONDS - 60);

const withKeys = (...keys: Jwk[]) => {
  const file = join(folder, `${randomUUID()}.json`);
  writeFileSync(file, JSON.stringify({ keys }));
  return { file, options: { environment: { SIGNING_KEYS_FILE: file } } };
};

/** What the service derives from a key, computed as an attacker with a copy of the key does. */
function secretOf({ d }: Jwk, purpose: string): string {
  return Buffer.from(hkdfSync('sha256', Buffer.from(d, 'base64url'), '', purpose, 32)).toString('base64url');
}

function cookieOf(key: Jwk, name: string, value: string): [string, string] {
  const text = `${name}.${value}`;
  const signature = createHmac('sha256', secretOf(key, 'agent session')).update(text).digest('base64');
  return [`__Host-${name}`, encodeURIComponent(`s:${text}.${signature.replace(/=+$/, '')}`)];
}

/** A session of an agent, from the values of a copy of the database. */
async function forgedSession(service: UsedService, key: Jwk): Promise<AgentBrowser> {
  await new AgentBrowser(service).signIn();
  const [session] = await agentSessionsIn(service).findBy({ kind: 'page' });
  const browser = new AgentBrowser(service);
  browser.cookies.set(...cookieOf(key, 'agent_session', session?.id as string));
  return browser;
}

async function isSignedIn(browser: AgentBrowser): Promise<boolean> {
  return redirected(await browser.open(FOR_TOKEN)).parameters.access_token !== undefined;
}

/** Signs in at the page with a form that an attacker has made. */
async function signInByForgedForm(service: UsedService, key: Jwk) {
  const nonce = randomUUID();
  const browser = new AgentBrowser(service);
  const { hidden } = formOf(await browser.open(FOR_TOKEN));
  browser.cookies.set(...cookieOf(key, 'form', nonce));
  const secret = secretOf(key, 'agent session');
  const csrf = createHmac('sha256', secret).update(`form token\n${nonce}`).digest('base64url');
  return browser.post('/sign-in', { ...hidden, ...ACME_AGENT, csrf });
}

describe('protocol §3.16: a signing key that has expired', () => {
  const service = useService(withKeys(old, current).options);
  const expire = () => service.clock.advance({ seconds: HOUR_SECONDS + 1 });

  it('makes no session of an agent, even before it expires', async () => {
    for (const key of [old, current]) expect(await isSignedIn(await forgedSession(service, key))).toBe(false);
  });

  it('makes no form of the sign-in page, although it did before', async () => {
    expect((await signInByForgedForm(service, old)).status, 'before it expires').toBe(303);
    expire();
    expect((await signInByForgedForm(service, old)).status).toBe(400);
    expect((await signInByForgedForm(service, current)).status, 'the key in force').toBe(303);
  });

  it('is not used after a start either', async () => {
    const expired = { ...old, exp: START_SECONDS - 1 };
    const started = await serviceOfTest(withKeys(expired, current).options);
    expect((await signInByForgedForm(started, expired)).status).toBe(400);
  });
});

describe('protocol §3.16: if every signing key has expired', () => {
  it('the page and the grants respond 500', async () => {
    const service = await serviceOfTest(withKeys(old).options);
    const session = new AgentBrowser(service);
    await session.signIn();
    expect(await isSignedIn(session)).toBe(true);
    service.clock.advance({ seconds: HOUR_SECONDS + 1 });
    const page = await session.open(FOR_TOKEN);
    expect({ status: page.status, parameters: redirected(page).parameters }).toEqual({ status: 500, parameters: {} });
    expect((await service.post(TOKEN, cookieBody())).status).toBe(500);
  });
});

it('protocol §3.16: a new key signs at once when the key before it expires within the time for its publication', async () => {
  const { file, options } = withKeys(old);
  const service = await serviceOfTest(options);
  const published = async () => (await service.send('GET', '/.well-known/jwks.json')).body.keys.length;
  writeFileSync(file, JSON.stringify({ keys: [{ ...old, exp: service.clock.seconds() + 100 }, current] }));
  await vi.waitUntil(async () => (await published()) === 2, { timeout: 20_000, interval: 100 });
  service.clock.advance({ seconds: 101 });
  expect(await published()).toBe(1);
  expect((await service.post(TOKEN, cookieBody())).status).toBe(200);
});
