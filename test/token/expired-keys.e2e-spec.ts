import { createHmac, hkdfSync, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { generateKey } from '../../src/access-token/key-set.js';
import { claimsOf } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { AgentBrowser, FOR_TOKEN, formOf, redirected } from '../support/authorization-page.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectInvalidGrant } from '../support/expect-error.js';
import { PROOF, proofExtension } from '../support/proof-extension.js';
import { ACME, ACME_AGENT } from '../support/test-registry.js';
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
  return { file, options: { environment: { SIGNING_KEYS_FILE: file }, ...proofExtension } };
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

/** A descent of a proof, as if the customer had created the proof. */
function forgedDescent(service: UsedService, key: Jwk, accessToken: string): string {
  const at = service.clock.seconds();
  const bearer = claimsOf(accessToken);
  const { sub: entityId, gen: generation } = bearer;
  const content = JSON.stringify({ bearer, organizationId: ACME, entityId, generation, at });
  const code = createHmac('sha256', secretOf(key, 'descent of a proof')).update(content).digest('base64url');
  return `${code}.${content}`;
}

async function redeemForged(service: UsedService, key: Jwk) {
  const { access_token } = (await service.post(TOKEN, cookieBody())).body;
  const { code } = (await service.post(PROOF, {}, bearer(access_token))).body;
  const forged = { code, result_descent: forgedDescent(service, key, access_token) };
  return service.post(TOKEN, cookieBody({ grant_type: 'test_proof', ...forged }));
}

describe('protocol §3.16: a signing key that has expired', () => {
  const service = useService(withKeys(old, current).options);
  const expire = () => service.clock.advance({ seconds: HOUR_SECONDS + 1 });

  it('makes no session of an agent, even before it expires', async () => {
    for (const key of [old, current]) expect(await isSignedIn(await forgedSession(service, key))).toBe(false);
  });

  it('makes no form of the sign-in page, although it did before', async () => {
    const signIn = async () => {
      const nonce = randomUUID();
      const browser = new AgentBrowser(service);
      const { hidden } = formOf(await browser.open(FOR_TOKEN));
      browser.cookies.set(...cookieOf(old, 'form', nonce));
      const secret = secretOf(old, 'agent session');
      const csrf = createHmac('sha256', secret).update(`form token\n${nonce}`).digest('base64url');
      return browser.post('/sign-in', { ...hidden, ...ACME_AGENT, csrf });
    };
    expect((await signIn()).status, 'before it expires').toBe(303);
    expire();
    expect((await signIn()).status).toBe(400);
  });

  it('makes no descent of a proof, although it did before', async () => {
    expect((await redeemForged(service, old)).status, 'before it expires').toBe(200);
    expire();
    expectInvalidGrant(await redeemForged(service, old));
    expect((await redeemForged(service, current)).status, 'the key in force').toBe(200);
  });

  it('is not used after a start either', async () => {
    const expired = { ...old, exp: START_SECONDS - 1 };
    const started = await serviceOfTest(withKeys(expired, current).options);
    expectInvalidGrant(await redeemForged(started, expired));
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
