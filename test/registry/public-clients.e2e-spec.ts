import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { OutputCapture } from '../../packages/conformance-kit/src/output-capture.js';
import { Organization } from '../../src/registry/organization.entity.js';
import { bearer } from '../support/authorization-headers.js';
import { AgentBrowser, FOR_PUBLIC, redirected } from '../support/authorization-page.js';
import { cookieBody, TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { expectInvalidRequest } from '../support/expect-error.js';
import { identitiesOf } from '../support/identities.js';
import { times } from '../support/races.js';
import { exportOf, registryFileOf, writeFileOf } from '../support/registry-files.js';
import { CLOSED, PUBLIC_ORIGIN, PUBLIC_SITE, testRegistry } from '../support/test-registry.js';
import { type TestResponse } from '../support/test-service.js';
import { redeem, TRANSFER, transferBody, transferToken } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const CLOSED_SITE = 'closed-site';
const CLOSED_AGENT = { email: 'agent@closed.example', password: 'a long pass phrase of this agent' };
const HINT = 'client_id: not usable in this organization';
const FROM_WIDGET = { origin: PUBLIC_ORIGIN };

const output = new OutputCapture();
const service = useService(() => {
  const registry = testRegistry();
  registry.clients.push({ client_id: CLOSED_SITE, name: 'Closed site', client_type: 'web', organization_id: CLOSED });
  registry.agents.push({ ...CLOSED_AGENT, name: 'Agent', organization_id: CLOSED, scopes: ['customers:own'] });
  return { registry, log: output.log };
});

const admin = (method: string, path: string, body?: object) => service.admin(method, `/admin/${path}`, body);
const storedValue = async (id: string) => (await service.rowsOf(Organization).findOneByOrFail({ id })).publicClients;

async function expectNotUsable(send: () => Promise<TestResponse>): Promise<void> {
  const before = await identitiesOf(service).count();
  const response = await send();
  expectInvalidRequest(response, HINT);
  expect(await identitiesOf(service).count()).toBe(before);
}

/** The conformance kit checks the same for each grant. */
describe('a public client in an organization that does not admit it', () => {
  it('gets no token by the cookie grant, even from its own page or for a browser that is known', async () => {
    const body = cookieBody({ client_id: PUBLIC_SITE, organization_id: CLOSED });
    await expectNotUsable(() => service.post(TOKEN, body));
    await expectNotUsable(() => service.post(TOKEN, body, FROM_WIDGET));
    const browser = new TestBrowser(service);
    expect((await browser.visit({ client_id: CLOSED_SITE, organization_id: CLOSED })).status).toBe(200);
    await expectNotUsable(() => browser.visit(body, TOKEN, FROM_WIDGET));
  });

  it('cannot be the client of an identity transfer', async () => {
    const { body } = await service.post(TOKEN, cookieBody({ client_id: CLOSED_SITE, organization_id: CLOSED }));
    await expectNotUsable(() =>
      service.post(TRANSFER, transferBody({ client_id: PUBLIC_SITE }), bearer(body.access_token)),
    );
  });

  it('cannot exchange a transfer token that was created before the organization withdrew the admission', async () => {
    const id = await newOrganization({ public_clients: [PUBLIC_SITE] });
    const body = cookieBody({ client_id: PUBLIC_SITE, organization_id: id });
    const { access_token } = (await service.post(TOKEN, body, FROM_WIDGET)).body;
    const codes = await times(3, () => transferToken(service, access_token, { client_id: PUBLIC_SITE }));
    expect((await redeem(service, codes[0], { client_id: PUBLIC_SITE })).status).toBe(200);
    await admin('PATCH', `organizations/${id}`, { public_clients: [] });
    await expectNotUsable(() => redeem(service, codes[1], { client_id: PUBLIC_SITE }, FROM_WIDGET));
    await expectNotUsable(() => redeem(service, codes[2], { client_id: PUBLIC_SITE, organization_id: id }));
    await expectNotUsable(() => service.post(TRANSFER, transferBody({ client_id: PUBLIC_SITE }), bearer(access_token)));
  });

  it('still gets an agent token at the authorization page, where the agent consents', async () => {
    const browser = new AgentBrowser(service);
    const allowed = await browser.submit(await browser.authorize(FOR_PUBLIC, CLOSED_AGENT), { decision: 'allow' });
    expect(redirected(allowed).parameters.access_token).toBeDefined();
  });
});

describe('the public clients of an organization in the admin API', () => {
  const tokenStatus = async (organization_id: string) =>
    (await service.post(TOKEN, cookieBody({ client_id: PUBLIC_SITE, organization_id }), FROM_WIDGET)).status;

  it('are none for a new organization, and can be set to all, to a list and to none', async () => {
    const id = await newOrganization();
    expect((await admin('GET', `organizations/${id}`)).body.public_clients).toEqual([]);
    expect(await tokenStatus(id)).toBe(400);
    for (const [value, shown, status] of [
      ['all', 'all', 200],
      [[], [], 400],
      [['not-registered-yet', PUBLIC_SITE], ['not-registered-yet', PUBLIC_SITE], 200],
      [['not-registered-yet'], ['not-registered-yet'], 400],
      ['all', 'all', 200],
      [null, [], 400],
    ] as const) {
      const { body } = await admin('PATCH', `organizations/${id}`, { public_clients: value });
      expect([value, body.public_clients, await tokenStatus(id)]).toEqual([value, shown, status]);
    }
  });

  it('do not admit a private client of another organization, even if it is listed', async () => {
    const id = await newOrganization({ public_clients: [CLOSED_SITE] });
    const body = cookieBody({ client_id: CLOSED_SITE, organization_id: id });
    await expectNotUsable(() => service.post(TOKEN, body));
  });

  it.each([
    ['a word other than all', 'every'],
    ['a list with a number', [1]],
    ['a list with an id that no client can have', ['two words']],
    ['a list with an id twice', ['a', 'b', 'a']],
    ['a list of more than 400 ids', Array.from({ length: 401 }, (_, n) => `c${n}`)],
  ])('are rejected when they are %s', async (_what, public_clients) => {
    const hint = 'public_clients: must be all, or a list of at most 400 different client ids';
    expectInvalidRequest(await admin('POST', 'organizations', { id: randomUUID(), name: 'X', public_clients }), hint);
    const id = await newOrganization();
    expectInvalidRequest(await admin('PATCH', `organizations/${id}`, { public_clients }), hint);
  });

  it('may be the longest list that is allowed', async () => {
    const public_clients = Array.from({ length: 400 }, (_, n) => `${n}`.padStart(128, 'x'));
    const apply = applyFile({ organizations: [{ id: CLOSED, name: 'Closed', public_clients }] });
    await expect(apply).resolves.toMatchObject([{ outcome: 'changed' }]);
    expect(await storedValue(CLOSED)).toEqual(public_clients);
    await applyFile({ organizations: [{ id: CLOSED, name: 'Closed', public_clients: [] }] });
  });
});

describe('the public clients of an organization in the registry file', () => {
  const warnings = () => output.lines.filter((line) => /public_clients/.test(line));

  it('stay the same when the file omits the field, and a warning names the organizations that admit all', async () => {
    const [one, two, three, fresh] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    const entries = [one, two, three].map((id) => ({ id, name: 'Of the file' }));
    const values = ['all', [PUBLIC_SITE], 'all'];
    await applyFile({ organizations: entries.map((entry, n) => ({ ...entry, public_clients: values[n] })) });
    output.lines.length = 0;
    const applied = await applyFile({ organizations: [...entries, { id: fresh, name: 'New' }] });
    expect(applied.map(({ outcome }) => outcome)).toEqual(['unchanged', 'unchanged', 'unchanged', 'created']);
    expect(await Promise.all([one, two, three, fresh].map(storedValue))).toEqual(['all', [PUBLIC_SITE], 'all', []]);
    expect(warnings()).toEqual([
      expect.stringContaining('organizations[0], organizations[2]: without public_clients, which admits all'),
    ]);
    output.lines.length = 0;
    await applyFile({ organizations: entries.map((entry) => ({ ...entry, public_clients: 'all' })) });
    expect(warnings()).toEqual([]);
  });

  it('are in the export, which can be applied', async () => {
    const id = randomUUID();
    await applyFile({ organizations: [{ id, name: 'Exported', public_clients: [PUBLIC_SITE] }] });
    const text = await exportOf(service);
    expect(text).toMatch(new RegExp(`id: ${id}\\n.*\\n.*\\n.*\\n    public_clients:\\n      - ${PUBLIC_SITE}\\n`));
    const reapplied = await applyFile(text);
    expect(new Set(reapplied.map(({ outcome }) => outcome))).toEqual(new Set(['changed', 'unchanged']));
  });
});

async function newOrganization(more: object = {}): Promise<string> {
  const id = randomUUID();
  expect((await admin('POST', 'organizations', { id, name: 'New', ...more })).status).toBe(201);
  return id;
}

function applyFile(content: object | string) {
  return registryFileOf(service).apply(writeFileOf(service, content));
}
