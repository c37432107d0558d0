import { createHmac, hkdfSync, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { generateKey } from '../../src/access-token/key-set.js';
import { AgentBrowser, FOR_TOKEN, redirected } from '../support/authorization-page.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { beginWindow } from '../support/limit-windows.js';
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
const old = { ...generateKey(START_SECONDS - DAY_MS / 1000), exp: START_SECONDS + 3 * HOUR_SECONDS };
const current = generateKey(START_SECONDS - 60);

const withKeys = (...keys: Jwk[]) => {
  const file = join(folder, `${randomUUID()}.json`);
  writeFileSync(file, JSON.stringify({ keys }));
  return { file, options: { environment: { SIGNING_KEYS_FILE: file, TRUST_PROXY: '1' } } };
};

const from = (ip: string) => ({ 'x-forwarded-for': ip });

/** What the service derives from a key, computed as an attacker with a copy of the key does. */
function secretOf({ d }: Jwk, purpose: string): string {
  return Buffer.from(hkdfSync('sha256', Buffer.from(d, 'base64url'), '', purpose, 32)).toString('base64url');
}

/** A session of an agent, from the values of a copy of the database. */
async function forgedSession(service: UsedService): Promise<AgentBrowser> {
  await new AgentBrowser(service).signIn();
  const [session] = await agentSessionsIn(service).findBy({ kind: 'page' });
  const browser = new AgentBrowser(service);
  browser.cookies.set('__Host-agent_session', session?.id as string);
  return browser;
}

async function isSignedIn(browser: AgentBrowser): Promise<boolean> {
  return redirected(await browser.open(FOR_TOKEN)).parameters.access_token !== undefined;
}

/**
 * Uses up the sign-ins of unknown browsers, and signs in with a cookie of a known browser that an attacker has made.
 */
async function signInByForgedCookie(service: UsedService, key: Jwk): Promise<number> {
  for (let n = 0; n < 100; n++)
    await new AgentBrowser(service, from(`198.51.100.${n >> 3}`)).signIn({ ...ACME_AGENT, password: 'wrong' });
  const browser = new AgentBrowser(service, from('203.0.113.7'));
  const expiresAt = service.clock.seconds() + HOUR_SECONDS;
  const hmac = createHmac('sha256', secretOf(key, 'known browser')).update(`${expiresAt}\n${ACME_AGENT.email}`);
  browser.cookies.set('__Host-agent_device', `${expiresAt}.${hmac.digest('base64url')}`);
  return (await browser.signIn()).status;
}

describe('protocol §3.16: a signing key that has expired', () => {
  const service = useService(withKeys(old, current).options);
  const expire = () => service.clock.advance({ seconds: 3 * HOUR_SECONDS + 1 });

  it('makes no session of an agent from a copy of the database', async () => {
    expect(await isSignedIn(await forgedSession(service))).toBe(false);
  });

  it('makes no browser known at the sign-in page, although it did before', async () => {
    beginWindow(service);
    expect(await signInByForgedCookie(service, old), 'before it expires').toBe(200);
    expire();
    beginWindow(service);
    expect(await signInByForgedCookie(service, old)).toBe(429);
    expect(await signInByForgedCookie(service, current), 'the key in force').toBe(200);
  });

  it('is not used after a start either', async () => {
    const expired = { ...old, exp: START_SECONDS - 1 };
    const started = await serviceOfTest(withKeys(expired, current).options);
    expect(await signInByForgedCookie(started, expired)).toBe(429);
  });
});

describe('protocol §3.16: if every signing key has expired', () => {
  it('the page and the grants respond 500', async () => {
    const service = await serviceOfTest(withKeys(old).options);
    const session = new AgentBrowser(service);
    await session.signIn();
    expect(await isSignedIn(session)).toBe(true);
    service.clock.advance({ seconds: 3 * HOUR_SECONDS + 1 });
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
