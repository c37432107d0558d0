import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { partsOf } from '../../../src/identity/identity-cookies.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { END_SESSIONS, endSessions } from '../../support/end-sessions.js';
import { expectError, expectInvalidRequest, expectInvalidToken } from '../../support/expect-error.js';
import { identitiesOf, secretOf } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { ERASE, EXPORT, manageCustomer, managerToken, managingRegistry } from '../../support/managed-customers.js';
import { manage } from '../../support/management-api.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { moveOf, remember } from '../../support/remember.js';
import { TestIssuer } from '../../support/test-issuer.js';
import {
  ACME,
  ACME_AGENT,
  ACME_BACKEND,
  ACME_ORIGIN,
  ACME_SITE,
  PUBLIC_SITE,
  RIVAL,
  RIVAL_AGENT,
  RIVAL_ORIGIN,
  RIVAL_SITE,
} from '../../support/test-registry.js';
import { startTestService, type TestService } from '../../support/test-service.js';
import { expectSameResponse, infoStatus, newCustomer } from '../../support/transfers.js';
import { serviceOfTest } from '../../support/use-service.js';

const ADMIN_TOKEN = 'operator-of-managed-customers-0123';
const UNKNOWN = '01890000-0000-7000-8000-000000000000';
const NARROW_AGENT = { email: 'narrow@acme.example', name: 'Narrow', password: 'narrow pass phrase' };
const ROUTES = [EXPORT, ERASE, END_SESSIONS];

let service: TestService;
let issuer: TestIssuer;
let agent: string;
let rival: string;
beforeAll(async () => {
  issuer = await TestIssuer.start();
  const registry = managingRegistry();
  registry.agents?.push({ ...NARROW_AGENT, organization_id: ACME, scopes: ['customers:own'] });
  const trusted = [
    issuer.trust(),
    issuer.trust({ issuer: 'https://managing.example', scopes: ['customers:own', 'customers:manage'] }),
  ];
  service = await startTestService({
    registry,
    environment: { ADMIN_TOKEN, TRUSTED_AGENT_ISSUERS: JSON.stringify(trusted) },
  });
  agent = await managerToken(service);
  rival = await managerToken(service, { email: RIVAL_AGENT.email, clientId: RIVAL_SITE });
});
afterAll(async () => {
  await service?.stop();
  await issuer?.stop();
});

const send = (path: string, body: object, token = agent, headers: Record<string, string> = {}) =>
  manageCustomer(service, path, token, body, headers);
const userOf = async (external_id: string, token = agent, client_id = ACME_SITE) =>
  (await service.post(TOKEN, agentTokenBody({ external_id, client_id }), bearer(token))).body;
const eventsAbout = (id: string, name: string) =>
  service.audit.filter(({ event, subject }) => event === name && subject?.id === id);

/** Every text in a value. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

describe('protocol §4.16: the export of a customer by an agent', () => {
  it('has what the operator’s export has, by customer_id and by external_id', async () => {
    const { entity_id, access_token } = await userOf('user-of-an-export');
    await remember(service, await moveOf(service, access_token));
    const path = `/admin/identities/${entity_id}/export`;
    const { tables } = (await manage(service, 'GET', path, bearer(ADMIN_TOKEN))).body;
    for (const named of [{ customer_id: entity_id }, { external_id: 'user-of-an-export' }]) {
      const { status, body } = await send(EXPORT, named);
      expect(status).toBe(200);
      expect(body).toEqual({ entity_id, exported_at: expect.any(String), tables });
    }
    expect(Object.keys(tables)).toEqual(expect.arrayContaining(['browser_customer', 'organization_user']));
  });

  it('cannot be joined with the export of another organization about the same browser', async () => {
    const first = await service.post(TOKEN, cookieBody());
    const cookie = cookieHeader(first);
    const atRival = cookieBody({ client_id: PUBLIC_SITE, organization_id: RIVAL });
    const { entity_id: rivalId } = (await service.post(TOKEN, atRival, { cookie })).body;
    const second = await remember(service, await moveOf(service, first.body.access_token));
    const ofAcme = await send(EXPORT, { customer_id: first.body.entity_id });
    const ofRival = await send(EXPORT, { customer_id: rivalId }, rival);
    expect(ofAcme.body.tables.browser_customer).toHaveLength(2);
    expect(ofRival.body.tables.browser_customer).toHaveLength(1);
    const ids = [ofAcme, ofRival].map(({ body }) => textsIn(body).filter((text) => /[0-9a-f]{8}/.test(text)));
    expect(ids[0]?.length).toBeGreaterThan(5);
    expect(ids[0]?.filter((id) => ids[1]?.includes(id))).toEqual([]);
    for (const pair of [first, second]) {
      const { browserId } = partsOf(secretOf(pair));
      for (const { text } of [ofAcme, ofRival]) expect(text).not.toContain(browserId);
    }
  });

  it('rejects an after that no export returned', async () => {
    const { entity_id } = await newCustomer(service);
    expectInvalidRequest(await send(EXPORT, { customer_id: entity_id, after: 'x' }), /^after: not a next/);
    expectInvalidRequest(await send(EXPORT, { customer_id: entity_id, after: 7 }), /^after: must be a string/);
  });
});

describe('protocol §4.14 and §4.16: an agent', () => {
  it.each(ROUTES)('gets the same from %s for an unknown customer as for one of another organization', async (path) => {
    const { entity_id, access_token } = await userOf(`user-of-rival${path}`, rival, RIVAL_SITE);
    const before = [await identitiesOf(service).count(), service.audit.length];
    for (const [foreign, unknown] of [
      [{ customer_id: entity_id }, { customer_id: UNKNOWN }],
      [{ external_id: `user-of-rival${path}` }, { external_id: 'unknown-user' }],
    ] as const) {
      await expectSameResponse(
        (headers) => send(path, foreign, agent, headers),
        (headers) => send(path, unknown, agent, headers),
      );
      const name = Object.keys(unknown)[0];
      expectInvalidRequest(await send(path, foreign), `${name}: unknown`);
    }
    expect([await identitiesOf(service).count(), service.audit.length]).toEqual(before);
    expect(await infoStatus(service, access_token)).toBe(200);
    expect((await userOf(`user-of-rival${path}`, rival, RIVAL_SITE)).entity_id).toBe(entity_id);
  });

  it.each([EXPORT, END_SESSIONS])(
    'gets the same from %s for an erased customer as for an unknown one',
    async (path) => {
      const { entity_id } = await newCustomer(service);
      expect((await send(ERASE, { customer_id: entity_id })).status).toBe(200);
      await expectSameResponse(
        (headers) => send(path, { customer_id: entity_id }, agent, headers),
        (headers) => send(path, { customer_id: UNKNOWN }, agent, headers),
      );
    },
  );

  it.each(ROUTES)('must name the customer to %s in exactly one way', async (path) => {
    const { entity_id, access_token } = await userOf(`user-named-to${path}`);
    const both = { customer_id: entity_id, external_id: `user-named-to${path}` };
    expectInvalidRequest(await send(path, {}), 'customer_id: required, or external_id');
    expectInvalidRequest(await send(path, both), 'external_id: must not be sent with customer_id');
    expectInvalidRequest(await send(path, { customer_id: 'x' }), /^customer_id: must be a UUID/);
    expectInvalidRequest(await send(path, { external_id: 17 }), /^external_id: must be a string/);
    expectInvalidRequest(await send(path, { external_id: '' }), 'external_id: must not be empty');
    expectInvalidRequest(await send(path, { external_id: 'a\nb' }), /^external_id: must be 1 to 255/);
    expect(await infoStatus(service, access_token)).toBe(200);
  });

  it('ends the sessions of a customer by external_id, and a customer cannot', async () => {
    const { entity_id, access_token } = await userOf('user-who-leaves');
    expectInvalidRequest(
      await endSessions(service, access_token, { external_id: 'user-who-leaves' }),
      'external_id: only for agents',
    );
    expect((await send(END_SESSIONS, { external_id: 'user-who-leaves' })).status).toBe(200);
    expect(await infoStatus(service, access_token)).toBe(401);
    expect((await userOf('user-who-leaves')).entity_id).toBe(entity_id);
  });

  it('is the actor of the audit events, with its client and organization', async () => {
    const { entity_id } = await newCustomer(service);
    for (const path of [EXPORT, END_SESSIONS, ERASE]) await send(path, { customer_id: entity_id });
    await send(ERASE, { customer_id: entity_id });
    const actor = { kind: 'agent', id: expect.stringMatching(/^[0-9a-f-]{36}$/) };
    for (const event of ['identity.exported', 'sessions.ended', 'identity.erased']) {
      const events = eventsAbout(entity_id, event);
      expect(events).toEqual([expect.objectContaining({ actor, organizationId: ACME, clientId: ACME_SITE })]);
    }
  });
});

describe('protocol §4.16: the scope customers:manage', () => {
  it.each([
    ['the agent does not list', { email: NARROW_AGENT.email }],
    ['the client does not list', { clientId: ACME_BACKEND }],
    ['the request for the token did not name', { scope: 'customers:own' }],
  ])('that %s is missing', async (_, more) => {
    const { entity_id, access_token } = await newCustomer(service);
    const scope = 'customers:own customers:manage';
    const token = await issueAgentToken(service, { email: ACME_AGENT.email, clientId: ACME_SITE, scope, ...more });
    for (const path of [EXPORT, ERASE]) {
      const refused = await send(path, { customer_id: entity_id }, token);
      expectError(refused, { status: 403, error: 'insufficient_scope', hint: /^scope: customers:manage / });
      expect(refused.headers.get('www-authenticate')).toContain('scope="customers:manage"');
    }
    expect(await infoStatus(service, access_token)).toBe(200);
  });

  it('counts in a token of a trusted issuer only if the configuration lists it for the issuer', async () => {
    const { entity_id } = await newCustomer(service);
    const tokenFrom = (iss: string) =>
      issuer.sign(service.clock.now(), { iss, scope: 'customers:own customers:manage' });
    const [unlisted, listed] = [await tokenFrom(issuer.issuer), await tokenFrom('https://managing.example')];
    const refused = await send(EXPORT, { customer_id: entity_id }, unlisted);
    expectError(refused, { status: 403, error: 'insufficient_scope', hint: /^scope: customers:manage / });
    expect((await send(END_SESSIONS, { customer_id: entity_id }, unlisted)).status).toBe(200);
    expect((await send(EXPORT, { customer_id: entity_id }, listed)).status).toBe(200);
  });

  it('of a trusted issuer names the issuer in the audit events, because agents of two issuers may have one id', async () => {
    const { entity_id } = await newCustomer(service);
    const tokenFrom = (iss: string) =>
      issuer.sign(service.clock.now(), { iss, scope: 'customers:own customers:manage' });
    const managing = await tokenFrom('https://managing.example');
    for (const path of [EXPORT, END_SESSIONS, ERASE]) await send(path, { customer_id: entity_id }, managing);
    const other = await newCustomer(service);
    await send(END_SESSIONS, { customer_id: other.entity_id }, await tokenFrom(issuer.issuer));
    const actor = { kind: 'agent', id: 'agent-7', issuer: 'https://managing.example' };
    for (const event of ['identity.exported', 'sessions.ended', 'identity.erased'])
      expect(eventsAbout(entity_id, event)).toEqual([expect.objectContaining({ actor, organizationId: ACME })]);
    expect(eventsAbout(other.entity_id, 'sessions.ended')).toMatchObject([
      { actor: { ...actor, issuer: issuer.issuer } },
    ]);
  });

  it('does not include customers:own, which end_sessions needs', async () => {
    const { entity_id } = await newCustomer(service);
    const token = await issueAgentToken(service, { scope: 'customers:manage' });
    const refused = await send(END_SESSIONS, { customer_id: entity_id }, token);
    expectError(refused, { status: 403, error: 'insufficient_scope', hint: /^scope: customers:own / });
    expect((await send(EXPORT, { customer_id: entity_id }, token)).status).toBe(200);
  });

  it('is not of a customer, whose token is refused', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    for (const path of [EXPORT, ERASE]) {
      expectInvalidToken(await send(path, { customer_id: entity_id }, access_token));
      expectInvalidToken(await service.post(path, { customer_id: entity_id }));
    }
    expect(await infoStatus(service, access_token)).toBe(200);
  });
});

describe('protocol §2.8 and §2.14: export and erase', () => {
  it.each([EXPORT, ERASE])('%s rejects the Origin of another client', async (path) => {
    const { entity_id, access_token } = await newCustomer(service);
    expectInvalidRequest(await send(path, { customer_id: entity_id }, agent, { origin: RIVAL_ORIGIN }), /^Origin: /);
    expect(await infoStatus(service, access_token)).toBe(200);
    const response = await send(path, { customer_id: entity_id }, agent, { origin: ACME_ORIGIN });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-credentials')).toBeNull();
  });

  it.each([EXPORT, ERASE])('%s counts against the limit tokens of the client of the agent', async (path) => {
    const limited = await serviceOfTest({
      registry: managingRegistry(),
      environment: { RATE_LIMIT: 'tokens=2/60' },
    });
    beginWindow(limited);
    const { entity_id, access_token } = await newCustomer(limited);
    const token = await managerToken(limited);
    expect((await manageCustomer(limited, path, token, { customer_id: UNKNOWN })).status).toBe(400);
    const response = await manageCustomer(limited, path, token, { customer_id: entity_id });
    expectError(response, { status: 429, error: 'temporarily_unavailable', hint: undefined });
    expect(await infoStatus(limited, access_token)).toBe(200);
  });
});
