import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CustomerDataParticipant, defineExtension, type ExportedRows } from '../../src/public/grant.js';
import { agentTokenBody } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, stayOf } from '../support/customer-refresh.js';
import { END_SESSIONS, endSessions } from '../support/end-sessions.js';
import { expectError, expectInvalidRequest, expectInvalidToken, expectLimited } from '../support/expect-error.js';
import { browserIdOf, identitiesOf, secretOf } from '../support/identities.js';
import { beginWindow } from '../support/limit-windows.js';
import { ERASE, EXPORT, manageCustomer, managerToken, managingRegistry } from '../support/managed-customers.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { moveOf, remember } from '../support/remember.js';
import { TestIssuer } from '../support/test-issuer.js';
import {
  ACME,
  ACME_BACKEND,
  ACME_ORIGIN,
  ACME_SITE,
  AT_RIVAL,
  RIVAL_AGENT,
  RIVAL_ORIGIN,
  RIVAL_SITE,
  UNKNOWN_CUSTOMER,
} from '../support/test-registry.js';
import { expectSameResponse, infoStatus, newCustomer, transferToken } from '../support/transfers.js';
import { serviceOfTest, useService } from '../support/use-service.js';

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const TIME = expect.stringMatching(ISO_TIME);
const NARROW_AGENT = { email: 'narrow@acme.example', name: 'Narrow', password: 'narrow pass phrase' };
const ROUTES = [EXPORT, ERASE, END_SESSIONS];
const BOTH_SCOPES = 'customers:own customers:manage';
const MANAGING_ISSUER = 'https://managing.example';

/** The number of rows of the grant's table about one customer. */
const tickets = new Map<string, number>();

/** One row more than an export has says that there are more. */
async function ticketsOf(owner: string): Promise<ExportedRows> {
  const count = Math.min(tickets.get(owner) ?? 1, 1_001);
  return { ticket: Array.from({ length: count }, (_, number) => ({ owner, number })) };
}

/** A participant that only erases. */
class ErasingParticipant implements CustomerDataParticipant {
  onErase = async () => undefined;
}

/** A grant's table with rows about customers. */
class TicketParticipant extends ErasingParticipant {
  exportRows = ticketsOf;
}

const extension = defineExtension({ participants: [ErasingParticipant, TicketParticipant] });

const registry = managingRegistry();
registry.agents?.push({ ...NARROW_AGENT, organization_id: ACME, scopes: ['customers:own'] });

let issuer: TestIssuer;
const service = useService(async () => {
  issuer = await TestIssuer.start();
  const managing = issuer.trust({ issuer: MANAGING_ISSUER, scopes: BOTH_SCOPES.split(' ') });
  const environment = { TRUSTED_AGENT_ISSUERS: JSON.stringify([issuer.trust(), managing]) };
  return { registry, environment, ...extension };
});
let agent: string;
let rival: string;
beforeAll(async () => {
  agent = await managerToken(service);
  rival = await managerToken(service, { email: RIVAL_AGENT.email, clientId: RIVAL_SITE });
});
afterAll(() => issuer?.stop());

const send = (path: string, body: object, token = agent, headers: Record<string, string> = {}) =>
  manageCustomer(service, path, token, body, headers);
const userOf = async (external_id: string, token = agent, client_id = ACME_SITE) =>
  (await service.post(TOKEN, agentTokenBody({ external_id, client_id }), bearer(token))).body;
const issuedBy = (iss: string) => issuer.sign(service.clock.now(), { iss, scope: BOTH_SCOPES });
const eventsAbout = (id: string, name: string) =>
  service.audit.filter(({ event, subject }) => event === name && subject?.id === id);
const exportOf = (id: string) => service.admin('GET', `/admin/customers/${id}/export`);

describe('protocol §9.2: the export of a customer', () => {
  it('has the rows of every table about the customer, and nothing of another customer', async () => {
    const known = await service.visit();
    const { entity_id, access_token } = known.body;
    const ofRival = await service.idOf(cookieHeader(known), AT_RIVAL);
    const linked = await remember(service, await moveOf(service, access_token));
    const code = await transferToken(service, access_token);
    const other = await newCustomer(service);
    const response = await exportOf(entity_id);
    expect(response.status).toBe(200);
    const { tables, ...head } = response.body;
    expect(head).toEqual({ entity_id, exported_at: TIME });
    expect(Object.keys(tables).sort()).toEqual(['customer', 'session', 'ticket']);
    expect(tables.customer).toEqual([expect.objectContaining({ entity_id, organization_id: ACME, created_at: TIME })]);
    const row = { customer_id: entity_id, created_at: TIME, expires_at: TIME };
    expect(tables.session).toHaveLength(3);
    expect(tables.session).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ ...row, kind: 'own', organization_id: ACME, client_id: null, redeemed_at: null }),
        expect.objectContaining({
          ...row,
          kind: 'transferred',
          organization_id: ACME,
          client_id: ACME_SITE,
          redeemed_at: TIME,
        }),
        expect.objectContaining({ ...row, kind: 'code', client_id: ACME_SITE }),
      ]),
    );
    expect(tables.ticket).toEqual([{ owner: entity_id, number: 0 }]);
    const browsers = [known, linked].map((each) => browserIdOf(secretOf(each)));
    for (const foreign of [ofRival, other.entity_id, code, agent, secretOf(known), secretOf(linked), ...browsers])
      expect(response.text).not.toContain(foreign);
    expect(response.text).not.toMatch(/secret|hash|code_challenge|network|browser_id/);
    const subject = { kind: 'customer', id: entity_id };
    expect(service.audit.at(-1)).toMatchObject({ event: 'identity.exported', actor: { kind: 'operator' }, subject });
  });

  it('has the user of the organization, the refresh tokens without a hash, and the raised generation', async () => {
    const { entity_id, access_token } = await userOf('user-of-exports');
    const { refresh_token } = await stayOf(service, access_token);
    const successor = (await refreshCustomer(service, refresh_token)).body.refresh_token;
    const response = await exportOf(entity_id);
    const { customer, session } = response.body.tables;
    expect(customer).toEqual([expect.objectContaining({ entity_id })]);
    expect(Boolean(customer[0].has_user)).toBe(true);
    const refresh = { kind: 'refresh', customer_id: entity_id, client_id: ACME_SITE, used_at: TIME, expires_at: TIME };
    expect(session).toContainEqual(expect.objectContaining(refresh));
    for (const secret of [refresh_token, successor]) expect(response.text).not.toContain(secret.split('.').at(-1));
    expect(response.text).not.toMatch(/hash|nonce/);

    expect((await send(END_SESSIONS, { customer_id: entity_id })).status).toBe(200);
    const { tables } = (await exportOf(entity_id)).body;
    expect(tables.customer[0].generation).toBeGreaterThan(customer[0].generation);
    expect(tables.session).toEqual([]);
  });

  it.each([
    [1_000, undefined],
    [1_001, true],
  ])('has %i rows of an extension, at most 1,000, and then truncated: true', async (count, truncated) => {
    const { entity_id } = await newCustomer(service);
    tickets.set(entity_id, count);
    for (const { status, body } of [await exportOf(entity_id), await send(EXPORT, { customer_id: entity_id })]) {
      expect(status).toBe(200);
      expect(body.tables.ticket).toHaveLength(1_000);
      expect(body.truncated).toBe(truncated);
    }
  });

  it('is a 404 for an unknown or erased customer', async () => {
    const { entity_id } = await newCustomer(service);
    await service.erase(entity_id);
    for (const id of [entity_id, UNKNOWN_CUSTOMER, 'x'])
      expectError(await exportOf(id), { status: 404, error: 'not_found', hint: undefined });
  });
});

/** Every text in a value. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

describe('protocol §4.16: the export of a customer by an agent', () => {
  it('has what the operator’s export has, by customer_id and by external_id', async () => {
    const { entity_id, access_token } = await userOf('user-of-an-export');
    await remember(service, await moveOf(service, access_token));
    const { tables } = (await exportOf(entity_id)).body;
    for (const named of [{ customer_id: entity_id }, { external_id: 'user-of-an-export' }]) {
      const { status, body } = await send(EXPORT, named);
      expect(status).toBe(200);
      expect(body).toEqual({ entity_id, exported_at: expect.any(String), tables });
    }
    expect(Object.keys(tables)).toEqual(expect.arrayContaining(['customer', 'session']));
  });

  it('cannot be joined with the export of another organization about the same browser', async () => {
    const first = await service.visit();
    const rivalId = await service.idOf(cookieHeader(first), AT_RIVAL);
    const second = await remember(service, await moveOf(service, first.body.access_token));
    const ofAcme = await send(EXPORT, { customer_id: first.body.entity_id });
    const ofRival = await send(EXPORT, { customer_id: rivalId }, rival);
    expect(ofAcme.body.tables.session).toHaveLength(2);
    expect(ofRival.body.tables.session).toHaveLength(1);
    const ids = [ofAcme, ofRival].map(({ body }) => textsIn(body).filter((text) => /[0-9a-f]{8}/.test(text)));
    expect(ids[0]?.length).toBeGreaterThan(5);
    expect(ids[0]?.filter((id) => ids[1]?.includes(id))).toEqual([]);
    for (const pair of [first, second]) {
      const browserId = browserIdOf(secretOf(pair));
      for (const { text } of [ofAcme, ofRival]) expect(text).not.toContain(browserId);
    }
  });
});

describe('protocol §4.14 and §4.16: an agent', () => {
  it.each(ROUTES)('gets the same from %s for an unknown customer as for one of another organization', async (path) => {
    const { entity_id, access_token } = await userOf(`user-of-rival${path}`, rival, RIVAL_SITE);
    const before = [await identitiesOf(service).count(), service.audit.length];
    for (const [foreign, unknown] of [
      [{ customer_id: entity_id }, { customer_id: UNKNOWN_CUSTOMER }],
      [{ external_id: `user-of-rival${path}` }, { external_id: 'unknown-user' }],
    ] as const) {
      await expectSameResponse(
        (headers) => send(path, foreign, agent, headers),
        (headers) => send(path, unknown, agent, headers),
      );
      const name = Object.keys(unknown)[0];
      const response = await send(path, foreign);
      if (path === ERASE) expect(response).toMatchObject({ status: 200, body: {} });
      else expectInvalidRequest(response, `${name}: unknown`);
    }
    expect([await identitiesOf(service).count(), service.audit.length]).toEqual(before);
    expect(await infoStatus(service, access_token)).toBe(200);
    expect((await userOf(`user-of-rival${path}`, rival, RIVAL_SITE)).entity_id).toBe(entity_id);
  });

  it.each(ROUTES)('gets the same from %s for an erased customer as for an unknown one', async (path) => {
    const { entity_id } = await newCustomer(service);
    expect((await send(ERASE, { customer_id: entity_id })).status).toBe(200);
    await expectSameResponse(
      (headers) => send(path, { customer_id: entity_id }, agent, headers),
      (headers) => send(path, { customer_id: UNKNOWN_CUSTOMER }, agent, headers),
    );
  });

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
    const token = await issueAgentToken(service, { scope: BOTH_SCOPES, ...more });
    for (const path of [EXPORT, ERASE]) {
      const refused = await send(path, { customer_id: entity_id }, token);
      expectError(refused, { status: 403, error: 'insufficient_scope', hint: /^scope: customers:manage / });
      expect(refused.headers.get('www-authenticate')).toContain('scope="customers:manage"');
    }
    expect(await infoStatus(service, access_token)).toBe(200);
  });

  it('counts in a token of a trusted issuer only if the configuration lists it for the issuer', async () => {
    const { entity_id } = await newCustomer(service);
    const [unlisted, listed] = [await issuedBy(issuer.issuer), await issuedBy(MANAGING_ISSUER)];
    const refused = await send(EXPORT, { customer_id: entity_id }, unlisted);
    expectError(refused, { status: 403, error: 'insufficient_scope', hint: /^scope: customers:manage / });
    expect((await send(END_SESSIONS, { customer_id: entity_id }, unlisted)).status).toBe(200);
    expect((await send(EXPORT, { customer_id: entity_id }, listed)).status).toBe(200);
  });

  it('of a trusted issuer names the issuer in the audit events, because agents of two issuers may have one id', async () => {
    const { entity_id } = await newCustomer(service);
    const managing = await issuedBy(MANAGING_ISSUER);
    for (const path of [EXPORT, END_SESSIONS, ERASE]) await send(path, { customer_id: entity_id }, managing);
    const other = await newCustomer(service);
    await send(END_SESSIONS, { customer_id: other.entity_id }, await issuedBy(issuer.issuer));
    const actor = { kind: 'agent', id: 'agent-7', issuer: MANAGING_ISSUER };
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

  it('count against the limit tokens of the client of the agent', async () => {
    const environment = { RATE_LIMIT: 'tokens=3/60' };
    const limited = await serviceOfTest({ registry: managingRegistry(), environment });
    beginWindow(limited);
    const { entity_id, access_token } = await newCustomer(limited);
    const token = await managerToken(limited);
    const sendLimited = (path: string, customer_id: string) => manageCustomer(limited, path, token, { customer_id });
    const statuses = [
      (await sendLimited(EXPORT, UNKNOWN_CUSTOMER)).status,
      (await sendLimited(ERASE, UNKNOWN_CUSTOMER)).status,
    ];
    expect(statuses).toEqual([400, 200]);
    for (const path of [EXPORT, ERASE]) expectLimited(await sendLimited(path, entity_id));
    expect(await infoStatus(limited, access_token)).toBe(200);
  });
});
