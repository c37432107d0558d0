import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { Consent } from '../../../src/agent-auth/page/consent.entity.js';
import { pkce } from '../../support/agent-tokens.js';
import { AgentBrowser, FOR_NATIVE, FOR_PUBLIC, type Query, redirected } from '../../support/authorization-page.js';
import { purge } from '../../support/operator-commands.js';
import { times } from '../../support/races.js';
import { applyRegistry } from '../../support/registry-files.js';
import { ACME, ACME_AGENT, ACME_NATIVE, PUBLIC_SITE, RIVAL, testRegistry } from '../../support/test-registry.js';
import { type TestResponse } from '../../support/test-service.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

const LOOPBACK = 'http://127.0.0.1:8080/callback';
const CLAIMED_HTTPS = 'https://app.acme.example/callback';
const PUBLIC_NATIVE = 'public-native';
const NATIVE_WITH_SECRET = 'native-with-secret';

const registry = testRegistry();
const native = { client_type: 'native', scopes: ['customers:own'] };
for (const client of registry.clients as Record<string, unknown>[])
  if (client.client_id === ACME_NATIVE)
    Object.assign(client, { redirect_uris: [FOR_NATIVE.redirect_uri, LOOPBACK, CLAIMED_HTTPS] });
registry.clients.push(
  { ...native, client_id: PUBLIC_NATIVE, name: 'Public app', redirect_uris: ['example.public:/cb', CLAIMED_HTTPS] },
  {
    ...{ ...native, client_id: NATIVE_WITH_SECRET, name: 'App with a secret', organization_id: ACME },
    ...{ client_secret: 'x'.repeat(32), redirect_uris: ['example.secret:/cb'] },
  },
);
const acmeAgent = registry.agents[0] as Record<string, unknown>;

const service = useService({ registry });

const rows = () => service.rowsOf(Consent);
const isConsentPage = ({ status, text }: TestResponse) =>
  status === 200 && text.includes('<title>Allow access</title>');

async function signedIn(agent = ACME_AGENT): Promise<AgentBrowser> {
  const browser = new AgentBrowser(service);
  expect((await browser.signIn(agent)).status).toBe(200);
  return browser;
}

async function allow(browser: AgentBrowser, query: Query): Promise<TestResponse> {
  const page = await browser.open(query);
  expect(isConsentPage(page), page.text).toBe(true);
  return browser.submit(page, { decision: 'allow' });
}

describe('a native application without a secret', () => {
  const forNative = (more: Query): Query => ({ ...FOR_NATIVE, ...pkce().asked, ...more });

  it.each<[string, Query]>([
    ['of the agent’s organization, at a private-use scheme', {}],
    ['of the agent’s organization, at a loopback address', { redirect_uri: LOOPBACK }],
    ['of the agent’s organization, at another port of it', { redirect_uri: LOOPBACK.replace('8080', '51004') }],
    [
      'of every organization, at a private-use scheme',
      { client_id: PUBLIC_NATIVE, redirect_uri: 'example.public:/cb' },
    ],
  ])('needs the consent of the agent for each request: %s', async (_, more) => {
    const browser = await signedIn();
    const query = forNative(more);
    for (let n = 0; n < 2; n++) expect(redirected(await allow(browser, query)).parameters).toHaveProperty('code');
    const silent = await browser.open({ ...query, prompt: 'none', state: 's' });
    expect(redirected(silent).parameters).toMatchObject({ error: 'consent_required', state: 's' });
    expect(redirected(silent).parameters).not.toHaveProperty('code');
    expect(await rows().countBy({ clientId: String(query.client_id) }), 'nothing is remembered').toBe(0);
  });

  it('causes an audit event for each consent', async () => {
    const browser = await signedIn();
    const before = service.audit.length;
    await allow(browser, forNative({}));
    const events = service.audit.slice(before).filter(({ event }) => event === 'consent.given');
    expect(events).toEqual([expect.objectContaining({ clientId: ACME_NATIVE, details: { scope: 'customers:own' } })]);
  });

  it('needs consent as other applications do at an https redirect URI, which no other program can claim', async () => {
    const browser = await signedIn();
    const own = await browser.open(forNative({ redirect_uri: CLAIMED_HTTPS }));
    expect(redirected(own).parameters).toHaveProperty('code');
    const atHttps = forNative({ client_id: PUBLIC_NATIVE, redirect_uri: CLAIMED_HTTPS });
    await allow(browser, atHttps);
    expect(redirected(await browser.open(atHttps)).parameters).toHaveProperty('code');
    const atScheme = forNative({ client_id: PUBLIC_NATIVE, redirect_uri: 'example.public:/cb' });
    expect(isConsentPage(await browser.open(atScheme)), 'the consent at the https address does not count').toBe(true);
  });

  it('needs consent as other applications do if it has a secret', async () => {
    const query = forNative({ client_id: NATIVE_WITH_SECRET, redirect_uri: 'example.secret:/cb' });
    expect(redirected(await (await signedIn()).open(query)).parameters).toHaveProperty('code');
  });
});

describe('the consent of an agent to a public application', () => {
  /** Applies the registry with other values of the agent, and moves the clock past the second of the change. */
  async function changeAgent(values: Record<string, unknown>): Promise<void> {
    Object.assign(acmeAgent, values);
    await applyRegistry(service, registry);
    service.clock.advance({ seconds: 2 });
  }
  const asksForConsent = async (browser: AgentBrowser) => isConsentPage(await browser.open(FOR_PUBLIC));

  it.each<[string, { organization_id?: string; password?: string; scopes?: string[] }]>([
    ['moves to another organization', { organization_id: RIVAL }],
    ['gets a new password', { password: 'a new pass phrase' }],
    ['gets other scopes', { scopes: ['customers:own', 'agents:read'] }],
  ])('ends when the agent %s, and stays ended after the change back', async (_, change) => {
    await allow(await signedIn(), FOR_PUBLIC);
    expect(await asksForConsent(await signedIn())).toBe(false);
    await changeAgent(change);
    const browser = await signedIn({ ...ACME_AGENT, ...(change.password && { password: change.password }) });
    expect(await asksForConsent(browser)).toBe(true);
    await allow(browser, FOR_PUBLIC);
    expect(await asksForConsent(browser)).toBe(false);
    await changeAgent({ organization_id: ACME, password: ACME_AGENT.password, scopes: ['customers:own'] });
    expect(await asksForConsent(await signedIn())).toBe(true);
  });

  describe('to an application that is deleted', () => {
    const application = { client_type: 'web', name: 'Public', redirect_uris: ['https://again.example/'] };
    let query: Query & { client_id: string } = { ...FOR_PUBLIC, client_id: '', redirect_uri: 'https://again.example/' };
    const remove = (from = service) => from.admin('DELETE', `/admin/clients/${query.client_id}`);
    const create = async () => {
      const entry = { ...application, client_id: query.client_id, scopes: ['customers:own'] };
      return (await service.admin('POST', '/admin/clients', entry)).status;
    };
    beforeEach(async () => {
      query = { ...query, client_id: randomUUID() };
      expect(await create()).toBe(201);
    });

    it('ends, and stays ended for a new application with its id', async () => {
      await allow(await signedIn(), query);
      expect(isConsentPage(await (await signedIn()).open(query))).toBe(false);
      expect((await remove()).status).toBe(200);
      expect(await create()).toBe(409);
      service.passDays(2);
      await purge(service);
      expect(await create()).toBe(201);
      expect(isConsentPage(await (await signedIn()).open(query))).toBe(true);
    });

    it('is not stored by a process that has not read the deletion yet', async () => {
      const other = await serviceOfTest({ database: service.database, registry });
      const browser = await signedIn();
      const page = await browser.open(query);
      expect((await remove(other)).status).toBe(200);
      await browser.submit(page, { decision: 'allow' });
      expect(await rows().countBy({ clientId: query.client_id })).toBe(0);
    });
  });

  it('is not valid if the database says that it is of an earlier generation, and is asked for once more', async () => {
    const browser = await signedIn();
    if (await asksForConsent(browser)) await allow(browser, FOR_PUBLIC);
    expect((await rows().decrement({ clientId: PUBLIC_SITE }, 'generation', 1)).affected).toBe(1);
    expect(await asksForConsent(browser)).toBe(true);
    await allow(browser, FOR_PUBLIC);
    expect(await asksForConsent(browser)).toBe(false);
  });

  it('is stored for the scopes of each of two parallel forms', async () => {
    const scopes = ['agents:read', 'customers:own'];
    await changeAgent({ scopes });
    const browser = await signedIn();
    const application = { client_type: 'web', name: 'Public', redirect_uris: ['https://again.example/'], scopes };
    for (let round = 0; round < 5; round++) {
      const client_id = randomUUID();
      expect((await service.admin('POST', '/admin/clients', { ...application, client_id })).status).toBe(201);
      const query = { ...FOR_PUBLIC, client_id, redirect_uri: 'https://again.example/' };
      await Promise.all(scopes.map((scope) => allow(browser, { ...query, scope })));
      const { scope } = await rows().findOneByOrFail({ clientId: client_id });
      expect(scope.split(' ').sort()).toEqual(scopes);
    }
    await changeAgent({ scopes: ['customers:own'] });
  });

  it('is stored once for ten parallel forms, each of which gets its response', async () => {
    const browser = await signedIn();
    await rows().delete({ clientId: PUBLIC_SITE });
    const page = await browser.open(FOR_PUBLIC);
    for (const response of await times(10, () => browser.submit(page, { decision: 'allow' })))
      expect(redirected(response).parameters).toHaveProperty('access_token');
    expect(await rows().countBy({ clientId: PUBLIC_SITE })).toBe(1);
    expect(await asksForConsent(browser)).toBe(false);
  });
});
