import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { CustomerEntity } from '../../../src/customer/customer.entity.js';
import { Offboarding } from '../../../src/operator/registry/offboarding/offboarding.js';
import { type CustomerDataParticipant, defineExtension } from '../../../src/public/grant.js';
import { Registry } from '../../../src/registry/registry.js';
import { Session } from '../../../src/session/session.entity.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { tablesWith } from '../../support/all-tables.js';
import { bearer } from '../../support/authorization-headers.js';
import { AgentBrowser, FOR_TOKEN } from '../../support/authorization-page.js';
import { CODES, codeExtension } from '../../support/code-extension.js';
import { cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, stay, WITH_REFRESH } from '../../support/customer-refresh.js';
import { expectError, expectInvalidGrant } from '../../support/expect-error.js';
import { expectNoOrphans, sessionsOfBrowser } from '../../support/identities.js';
import { manage, metricOf } from '../../support/management-api.js';
import { issueAgentToken, purge } from '../../support/operator-commands.js';
import { PROOF, proofExtension } from '../../support/proof-extension.js';
import { applyRegistry, exportOf, registryFileOf, writeFileOf } from '../../support/registry-files.js';
import { moveOf } from '../../support/remember.js';
import { endNewToken, FeedConsumer } from '../../support/revocation-feed.js';
import { customersOf, newTenant, runOffboarding, type Tenant } from '../../support/tenants.js';
import { TestIssuer } from '../../support/test-issuer.js';
import { ACME, PUBLIC_SITE } from '../../support/test-registry.js';
import { infoStatus, transferToken } from '../../support/transfers.js';
import { ADMIN_TOKEN, DAY_SECONDS, serviceOfTest, useService } from '../../support/use-service.js';

const CUSTOMERS_PER_STEP = 16;
/** An erasure of so many customers takes three steps. */
const CUSTOMERS_OF_STEPS_COUNT = 35;

/** The data of an extension, by the ids of customers, and the customers whose data it cannot delete. */
const stored = new Set<string>();
let cannotErase: (entityId: string) => boolean = () => false;

/** Stops the process that erases a customer for a while. */
let freeze: () => Promise<void> = async () => undefined;

class StoringParticipant implements CustomerDataParticipant {
  async onErase(entityId: string): Promise<void> {
    await freeze();
    if (cannotErase(entityId)) throw new Error('the table is locked');
    stored.delete(entityId);
  }
}

const { modules: ofCodes = [] } = codeExtension;
const { modules: ofProofs = [] } = proofExtension;
const extension = defineExtension({ modules: [...ofCodes, ...ofProofs], participants: [StoringParticipant] });
/** The organization of agents of a trusted issuer. */
const TRUSTING = randomUUID();

let idp: TestIssuer;
const service = useService(async () => {
  // the tests carry out what is due themselves
  vi.spyOn(Offboarding.prototype, 'onApplicationBootstrap').mockReturnValue();
  idp = await TestIssuer.start();
  const trusted = [idp.trust({ organizations: [TRUSTING] })];
  return { ...extension, environment: { TRUSTED_AGENT_ISSUERS: JSON.stringify(trusted) } };
});
afterAll(() => idp?.stop());
const admin = (method: string, path: string, body?: object) => service.admin(method, `/admin/${path}`, body);
const pathOf = ({ id }: Tenant) => `organizations/${id}`;
const suspend = async (tenant: Tenant) =>
  expect((await admin('PATCH', pathOf(tenant), { suspended: true })).status).toBe(200);
const request = (tenant: Tenant) => admin('DELETE', pathOf(tenant));
const cancel = (tenant: Tenant) => admin('DELETE', `${pathOf(tenant)}/offboarding`);
const stateOf = async (tenant: Tenant) => (await admin('GET', pathOf(tenant))).body.offboarding;
const customerCount = ({ id }: Tenant) => service.rowsOf(CustomerEntity).countBy({ organizationId: id });
const run = () => runOffboarding(service);
const expectConflict = async (response: ReturnType<typeof admin>, hint: RegExp) =>
  expectError(await response, { status: 409, error: 'conflict', hint });
const eventsOf = ({ id }: Tenant) =>
  service.audit
    .filter(({ subject }) => subject?.kind === 'organization' && subject.id === id)
    .map(({ event, actor, details }) => [event, actor.kind, details?.change, details?.fields].flat().join(' ').trim());

/** Suspends a tenant, and off-boards it until its erasure is due. */
async function beginOffboarding(tenant: Tenant): Promise<void> {
  await suspend(tenant);
  expect((await request(tenant)).status).toBe(200);
  service.clock.advance({ seconds: DAY_SECONDS + 1 });
}

describe('the off-boarding of an organization', () => {
  it('begins after the delay, which a repeated request does not move, and erases its customers and agents', async () => {
    const tenant = await newTenant(service);
    await customersOf(service, tenant, 3);
    await expectConflict(request(tenant), /^id: suspend the organization first/);
    expect((await admin('DELETE', `organizations/${randomUUID()}`)).status).toBe(404);
    await suspend(tenant);
    const requestedAt = service.clock.now();
    const { begins_at, customers_left } = (await request(tenant)).body.offboarding;
    expect(customers_left).toBe(3);
    const delayMs = Date.parse(begins_at) - requestedAt;
    expect(Math.floor(delayMs / 1000 / 60)).toBe(24 * 60);
    service.clock.advance({ seconds: 3_600 });
    expect((await request(tenant)).body.offboarding).toEqual({ begins_at, customers_left: 3 });
    const listed = (await admin('GET', 'organizations')).body.organizations;
    expect(listed.find(({ id }: Tenant) => id === tenant.id).offboarding).toEqual({ begins_at });

    service.clock.advance({ seconds: DAY_SECONDS - 3_660 });
    await run();
    expect(await customerCount(tenant)).toBe(3);
    service.clock.advance({ seconds: 120 });
    await run();
    expect(await stateOf(tenant)).toEqual({ begins_at, customers_left: 0 });
    expect((await admin('GET', `agents/${tenant.agentId}`)).status).toBe(404);
    expect((await admin('GET', `clients/${tenant.clientId}`)).status).toBe(404);
    expect(eventsOf(tenant)).toEqual([
      'registry.changed operator created',
      'registry.changed operator changed suspended',
      'registry.changed operator changed offboarding',
      'registry.changed service deleted',
    ]);
    expect(service.audit.filter(({ event }) => event === 'identity.erased')).toEqual([]);
  });

  it('leaves nothing in any table at the end, and in the feed no entry but that of its client, and its ids are free then', async () => {
    const remember = { grant_types: WITH_REFRESH, grants: { identity_token: { remember: ['refresh_token'] } } };
    const tenant = await newTenant(service, remember, TRUSTING);
    const { id, clientId, email, agentId, ofClient } = tenant;
    const visitor = await service.visit(undefined, ofClient);
    const ofVisitor = { client_id: clientId };
    const token = visitor.body.access_token;
    const device = (await stay(service, await moveOf(service, token, ofVisitor), ofVisitor)).body;
    await transferToken(service, token, ofVisitor);
    const ids = [...(await customersOf(service, tenant, CUSTOMERS_OF_STEPS_COUNT)), visitor.body.entity_id];
    for (const customer of ids) stored.add(customer);
    const [signedOut, erased] = await customersOf(service, tenant, 2);
    expect((await admin('POST', `customers/${signedOut}/end_sessions`, {})).status, 'an event').toBe(200);
    expect((await service.erase(erased as string)).status).toBe(200);
    await new AgentBrowser(service).signIn(
      { email, password: 'a password of the agent' },
      { ...FOR_TOKEN, client_id: clientId, redirect_uri: ofClient.redirect_uri },
    );
    const issue = { ...ofClient, redirect_uri: undefined, grant: 'test_code' };
    expect((await service.post(CODES, issue)).status).toBe(200);
    const ofIssuer = await idp.sign(service.clock.now(), { organization_id: id, sub: 'a person of the issuer' });
    expect((await service.post(PROOF, {}, bearer(ofIssuer))).status, 'a proof without a customer').toBe(200);
    expect(await service.rowsOf(Session).countBy({ customerId: '' })).toBe(1);
    const sessions = await sessionsOfBrowser(service, visitor);
    const texts = [
      id,
      clientId,
      email,
      agentId,
      'a person of the issuer',
      ...ids,
      ...sessions.map((session) => session.browserId as string),
    ];
    expect(await tablesWith(service, texts)).toEqual([
      'agent',
      'agent_session',
      'browser',
      'client_application',
      'customer',
      'customer_event',
      'customer_key',
      'one_time_code',
      'organization',
      'session',
    ]);

    await suspend(tenant);
    const feed = new FeedConsumer([service], bearer(ADMIN_TOKEN));
    await feed.find({ kind: 'organization', value: id });
    const entryCount = feed.entries.length;
    await request(tenant);
    service.clock.advance({ seconds: DAY_SECONDS + 1 });
    await run();
    expect(await tablesWith(service, [...ids, email, agentId, 'a person of the issuer'])).toEqual([]);
    expect(await service.rowsOf(Session).countBy({ customerId: '' })).toBe(0);
    const remaining = ['client_application', 'customer_event', 'ended', 'organization'];
    expect(await tablesWith(service, [id, clientId])).toEqual(remaining);
    expect(ids.filter((customer) => stored.has(customer))).toEqual([]);
    await expectNoOrphans(service);
    await feed.find({ kind: 'client', value: clientId });
    await feed.find({ kind: 'session', value: await endNewToken(service) });
    const later = feed.entries.slice(entryCount).map(({ kind }) => kind);
    expect(later, 'the client, and the last token').toEqual(['client', 'session']);

    const entry = { id, name: 'Again' };
    const redirect_uris = [ofClient.redirect_uri];
    const client = { client_id: clientId, name: 'Again', client_type: 'web', redirect_uris, ...remember };
    const areTaken = async () => {
      await expectConflict(admin('POST', 'organizations', entry), /was deleted, and its id is free when everything/);
      await expectConflict(admin('PUT', `organizations/${id}`, entry), /is being off-boarded/);
      await expectConflict(admin('POST', 'clients', client), /was deleted/);
    };
    await areTaken();
    service.clock.advance({ seconds: DAY_SECONDS + 60 });
    await run();
    await areTaken();
    service.clock.advance({ seconds: 61 });
    await run();
    await areTaken();
    await purge(service);
    await run();
    expect(eventsOf(tenant).at(-1)).toBe('organization.erased service');
    expect((await admin('GET', pathOf(tenant))).status).toBe(404);
    await purge(service);
    expect(await tablesWith(service, texts), 'the erasure, of which consumers learn').toEqual(['customer_event']);
    service.passDays(7);
    await purge(service);
    expect(await tablesWith(service, texts)).toEqual([]);

    expect((await admin('POST', 'organizations', { ...entry, public_clients: [PUBLIC_SITE] })).status).toBe(201);
    expect((await admin('POST', 'clients', { ...client, organization_id: id })).status).toBe(201);
    const again = await service.visit(cookieHeader(visitor), ofClient);
    expect(again.status).toBe(200);
    expect(ids).not.toContain(again.body.entity_id);
    expect([await infoStatus(service, token), await infoStatus(service, again.body.access_token)]).toEqual([401, 200]);
    expectInvalidGrant(await refreshCustomer(service, device.refresh_token, ofVisitor));
    expect(await stateOf(tenant)).toBeUndefined();
  });

  it('can be cancelled until the erasure has begun, and the organization works again when it is no longer suspended', async () => {
    const tenant = await newTenant(service);
    const [customer] = await customersOf(service, tenant, 1);
    const visitor = await service.visit(undefined, tenant.ofClient);
    expect((await cancel(tenant)).status, 'nothing to cancel').toBe(200);
    await suspend(tenant);
    await request(tenant);
    await expectConflict(
      admin('PATCH', pathOf(tenant), { suspended: false }),
      /is being off-boarded; cancel that first/,
    );
    await expectConflict(admin('PUT', pathOf(tenant), { name: 'Other' }), /is being off-boarded/);
    expect((await admin('PATCH', pathOf(tenant), { suspended: true })).status, 'no change').toBe(200);
    expect((await cancel(tenant)).status).toBe(200);
    expect((await cancel(tenant)).status).toBe(200);
    service.clock.advance({ seconds: DAY_SECONDS + 1 });
    await run();
    expect((await admin('GET', pathOf(tenant))).body).toMatchObject({ suspended: true });
    expect(await stateOf(tenant)).toBeUndefined();
    expect((await admin('PATCH', pathOf(tenant), { suspended: false })).status).toBe(200);
    service.clock.advance({ seconds: 7 });
    expect(await service.idOf(cookieHeader(visitor), tenant.ofClient)).toBe(visitor.body.entity_id);
    expect((await service.admin('GET', `/admin/customers/${customer}`)).status).toBe(200);
    await beginOffboarding(tenant);
    expect((await cancel(tenant)).status, 'due, and not begun').toBe(200);
    await beginOffboarding(tenant);
    await run();
    await expectConflict(cancel(tenant), /^id: the erasure has begun/);
    await expectConflict(admin('PATCH', pathOf(tenant), { name: 'Other' }), /is being off-boarded/);
    expect((await request(tenant)).body.offboarding).toMatchObject({ customers_left: 0 });
    expect((await admin('DELETE', `organizations/${randomUUID()}/offboarding`)).status).toBe(404);
  });

  it('is either carried out or cancelled if both happen at once, in two processes whose clocks differ', async () => {
    const behind = await serviceOfTest({ ...extension, database: service.database });
    for (let round = 0; round < 8; round++) {
      const tenant = await newTenant(service);
      await customersOf(service, tenant, 1);
      await beginOffboarding(tenant);
      behind.clock.advance({ seconds: DAY_SECONDS - 5 });
      const cancelling = behind.admin('DELETE', `/admin/${pathOf(tenant)}/offboarding`);
      const [{ status }] = await Promise.all([cancelling, request(tenant), run()]);
      await run();
      const remaining = [await customerCount(tenant), (await admin('GET', `agents/${tenant.agentId}`)).status];
      expect([status, ...remaining]).toEqual(status === 200 ? [200, 1, 200] : [409, 0, 404]);
      for (const each of [service, behind]) each.clock.reset();
    }
  });

  it('leaves the customers of other organizations, also in a browser that it shares with them', async () => {
    const tenant = await newTenant(service);
    const ofAcme = { client_id: PUBLIC_SITE, organization_id: ACME };
    const visits: { shared: TestBrowser; acme: string; ofTenant: string }[] = [];
    while (visits.length < 5) {
      const shared = new TestBrowser(service);
      const acme = (await shared.visit(ofAcme)).body.entity_id;
      visits.push({ shared, acme, ofTenant: (await shared.visit(tenant.ofClient)).body.entity_id });
    }
    const alone = await service.visit(undefined, tenant.ofClient);
    await beginOffboarding(tenant);
    await run();
    for (const { shared, acme } of visits) expect((await shared.visit(ofAcme)).body.entity_id).toBe(acme);
    expect(await sessionsOfBrowser(service, alone)).toEqual([]);
    const gone = [alone.body.entity_id, ...visits.map(({ ofTenant }) => ofTenant), tenant.agentId];
    expect(await tablesWith(service, gone)).toEqual([]);
    const publicClient = (await admin('GET', `clients/${PUBLIC_SITE}`)).status;
    expect(publicClient, 'a client that belongs to no organization').toBe(200);
  });

  it('continues after an extension has failed, erases the other customers meanwhile, and keeps the agents until then', async () => {
    const tenant = await newTenant(service);
    const ids = await customersOf(service, tenant, CUSTOMERS_OF_STEPS_COUNT);
    for (const id of ids) stored.add(id);
    const agentToken = await issueAgentToken(service, { email: tenant.email, clientId: tenant.clientId });
    await beginOffboarding(tenant);
    cannotErase = (id) => id === ids[3];
    await run();
    expect(await customerCount(tenant)).toBe(1);
    expect(await stateOf(tenant)).toMatchObject({ customers_left: 1 });
    expect((await admin('GET', `agents/${tenant.agentId}`)).status).toBe(200);
    const taken = { email: tenant.email, name: 'X', password: 'a password of another', organization_id: ACME };
    await expectConflict(admin('POST', 'agents', taken), /belongs to another agent/);
    const signIn = { ...FOR_TOKEN, client_id: tenant.clientId, redirect_uri: tenant.ofClient.redirect_uri };
    const agent = { email: tenant.email, password: 'a password of the agent' };
    expect((await new AgentBrowser(service).signIn(agent, signIn)).status, 'a sign-in of the agent').toBe(400);
    const asAgent = await service.post(TOKEN, agentTokenBody(tenant.ofClient), bearer(agentToken));
    expect(asAgent.status).toBe(401);
    cannotErase = () => false;
    await run();
    expect([await customerCount(tenant), stored.has(ids[3] as string)]).toEqual([0, false]);
    expect((await admin('POST', 'agents', taken)).status, 'the email is free').toBe(201);
  });

  it('stops at the first step in which an extension deletes nothing, and tries again', async () => {
    const tenant = await newTenant(service);
    await customersOf(service, tenant, CUSTOMERS_OF_STEPS_COUNT);
    await beginOffboarding(tenant);
    const asked: string[] = [];
    cannotErase = (id) => asked.push(id) > 0;
    await run();
    expect([asked.length, await customerCount(tenant)]).toEqual([CUSTOMERS_PER_STEP, CUSTOMERS_OF_STEPS_COUNT]);
    cannotErase = () => false;
    await run();
    expect(await customerCount(tenant)).toBe(0);
  });

  it('continues in another process if a process stops in the middle', async () => {
    const tenant = await newTenant(service);
    await customersOf(service, tenant, CUSTOMERS_OF_STEPS_COUNT);
    await beginOffboarding(tenant);
    const dying = await serviceOfTest({ ...extension, database: service.database });
    dying.clock.advance({ seconds: DAY_SECONDS + 1 });
    cannotErase = () => {
      dying.application.get(Offboarding, { strict: false }).onApplicationShutdown();
      return false;
    };
    await runOffboarding(dying);
    cannotErase = () => false;
    expect(await customerCount(tenant)).toBe(CUSTOMERS_OF_STEPS_COUNT - CUSTOMERS_PER_STEP);
    expect((await stateOf(tenant)).customers_left).toBe(CUSTOMERS_OF_STEPS_COUNT - CUSTOMERS_PER_STEP);
    await run();
    expect(await customerCount(tenant)).toBe(0);
  });

  it('erases nothing of a new organization with the id in a process that was stopped for long', async () => {
    const tenant = await newTenant(service);
    await customersOf(service, tenant, CUSTOMERS_OF_STEPS_COUNT);
    await beginOffboarding(tenant);
    const frozen = await serviceOfTest({ ...extension, database: service.database });
    frozen.clock.advance({ seconds: DAY_SECONDS + 1 });
    let thaw = (): void => undefined;
    const isThawed = new Promise<void>((resolve) => {
      thaw = resolve;
    });
    let isFrozen = (): void => undefined;
    const froze = new Promise<void>((resolve) => {
      isFrozen = resolve;
    });
    freeze = () => {
      freeze = async () => undefined;
      isFrozen();
      return isThawed;
    };
    const late = runOffboarding(frozen);
    await froze;
    await service.application.get(DataSource).query("UPDATE lease SET owner = '' WHERE name = 'offboarding'");
    await run();
    service.clock.advance({ seconds: DAY_SECONDS + 180 });
    await purge(service);
    await run();
    const again = await newTenant(service, {}, tenant.id);
    await customersOf(service, again, 3);
    thaw();
    await late;
    await runOffboarding(frozen);
    expect([await customerCount(again), (await admin('GET', `agents/${again.agentId}`)).status]).toEqual([3, 200]);
  });

  it('refuses the tokens in each process until the end, also with a delay of 0 hours, and one that starts later', async () => {
    const hasty = await serviceOfTest({
      ...extension,
      environment: { OFFBOARDING_DELAY_HOURS: '0' },
    });
    const other = await serviceOfTest({ ...extension, database: hasty.database });
    const tenant = await newTenant(hasty);
    const token = (await hasty.visit(undefined, tenant.ofClient)).body.access_token;
    expect((await hasty.admin('PATCH', `/admin/${pathOf(tenant)}`, { suspended: true })).status).toBe(200);
    const suspendedAt = hasty.clock.now();
    const { begins_at } = (await hasty.admin('DELETE', `/admin/${pathOf(tenant)}`)).body.offboarding;
    expect(Date.parse(begins_at) - suspendedAt).toBeGreaterThan(60_000);
    expect(Date.parse(begins_at) - suspendedAt).toBeLessThan(70_000);
    for (const each of [hasty, other]) each.clock.advance({ seconds: 71 });
    await runOffboarding(hasty);
    const later = await serviceOfTest({ ...extension, database: hasty.database });
    later.clock.advance({ seconds: 71 });
    await other.application.get(Registry, { strict: false }).renew();
    for (const at of [hasty, other, later]) {
      const introspect = () => manage(at, 'POST', '/oauth2/introspect', bearer(ADMIN_TOKEN), { token });
      expect((await introspect()).body).toMatchObject({ active: false, inactive_reason: 'client_revoked' });
      expect((await at.visit(undefined, tenant.ofClient)).status).toBe(400);
    }
  });

  it('is left out of a registry file that lists it, of an export and of --prune, with its clients and agents', async () => {
    const tenant = await newTenant(service);
    const listed = { organizations: [{ id: tenant.id, name: 'Tenant' }] };
    await applyRegistry(service, listed);
    await suspend(tenant);
    await request(tenant);
    const clientEntry = { client_id: tenant.clientId, name: 'Changed', client_type: 'web', organization_id: tenant.id };
    const withClient = { ...listed, clients: [clientEntry] };
    const warn = vi.spyOn(Logger.prototype, 'warn');
    const warning = 'the registry file: organizations[0]: being off-boarded, so the entries are left out';
    expect(await applyRegistry(service, withClient)).toEqual([]);
    expect(warn.mock.calls.flat()).toContain(warning);
    const exported = await exportOf(service);
    for (const text of [tenant.id, tenant.clientId, tenant.email]) expect(exported).not.toContain(text);
    await registryFileOf(service).apply(writeFileOf(service, exported), { prunes: true });
    expect(await stateOf(tenant)).toMatchObject({ customers_left: 0 });
    service.clock.advance({ seconds: DAY_SECONDS + 1 });
    cannotErase = () => true;
    await run();
    expect(await exportOf(service)).not.toContain(tenant.id);
    expect(await applyRegistry(service, withClient)).toEqual([]);
    cannotErase = () => false;
  });

  it('is counted in the metrics from its request, and has an age from the time when the erasure is due, until its end', async () => {
    const alone = await serviceOfTest(extension);
    const count = () => metricOf(alone, 'cas_offboardings');
    const age = () => metricOf(alone, 'cas_offboarding_age_seconds');
    const tenant = await newTenant(alone);
    await alone.admin('PATCH', `/admin/${pathOf(tenant)}`, { suspended: true });
    await alone.admin('DELETE', `/admin/${pathOf(tenant)}`);
    expect([await count(), await age()]).toEqual([1, 0]);
    alone.clock.advance({ seconds: DAY_SECONDS + 60 });
    expect(await age()).toBeGreaterThanOrEqual(60);
    await runOffboarding(alone);
    expect(await age()).toBeGreaterThanOrEqual(60);
    alone.clock.advance({ seconds: DAY_SECONDS + 60 });
    await purge(alone);
    await runOffboarding(alone);
    expect(await age(), 'an entry of the feed may be in force').toBeGreaterThan(DAY_SECONDS);
    alone.clock.advance({ seconds: 120 });
    await runOffboarding(alone);
    expect([await count(), await age()]).toEqual([0, 0]);
  });
});
