import { Injectable, Module } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CustomerDataParticipants, IdentityModule } from '../../src/public/grant.js';
import { agentTokenBody } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../support/customer-refresh.js';
import { expectError, expectInvalidToken } from '../support/expect-error.js';
import { secretOf } from '../support/identities.js';
import { manage } from '../support/management-api.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { moveOf, remember } from '../support/remember.js';
import { ACME, ACME_SITE, PUBLIC_SITE, RIVAL } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { newCustomer, transferToken } from '../support/transfers.js';

const ADMIN_TOKEN = 'operator-of-exports-0123456789-0';
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** A grant's table with rows about customers, and an older participant without an export. */
@Injectable()
class TestParticipant {
  constructor(participants: CustomerDataParticipants) {
    const older = { onErase: async () => {}, mustRetain: async () => [], linkedIds: async () => [] };
    participants.add(older);
    participants.add({ ...older, exportRows: async (id: string) => ({ ticket: [{ owner: id, number: 7 }] }) });
  }
}

@Module({ imports: [IdentityModule], providers: [TestParticipant] })
class TestParticipantModule {}

let service: TestService;
beforeAll(async () => {
  const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
  service = await startTestService({ registry, environment: { ADMIN_TOKEN }, modules: [TestParticipantModule] });
});
afterAll(() => service?.stop());

const exportOf = (id: string, token = ADMIN_TOKEN) =>
  manage(service, 'GET', `/admin/identities/${id}/export`, bearer(token));

describe('protocol §9.2: the export of a customer', () => {
  it('has the rows of every table about the customer, and nothing of another customer', async () => {
    const agent = await issueAgentToken(service);
    const known = await service.post(TOKEN, cookieBody());
    const { entity_id, access_token } = known.body;
    const cookie = cookieHeader(known);
    const body = cookieBody({ client_id: PUBLIC_SITE, organization_id: RIVAL });
    const ofRival = (await service.post(TOKEN, body, { cookie })).body.entity_id;
    const linked = await remember(service, await moveOf(service, access_token));
    const code = await transferToken(service, access_token);
    const other = await newCustomer(service);
    const response = await exportOf(entity_id);
    expect(response.status).toBe(200);
    const { tables, ...head } = response.body;
    expect(head).toEqual({ entity_id, exported_at: expect.stringMatching(ISO_TIME) });
    expect(tables.customer_identity).toEqual([
      expect.objectContaining({ entity_id, organization_id: ACME, created_at: expect.stringMatching(ISO_TIME) }),
    ]);
    expect(tables.browser_link).toEqual([expect.objectContaining({ entity_id, organization_id: ACME })]);
    expect(tables.link_ancestor.length).toBeGreaterThan(0);
    expect(tables.one_time_code).toHaveLength(2);
    for (const row of tables.one_time_code)
      expect(row).toMatchObject({
        subject: entity_id,
        client_id: ACME_SITE,
        expires_at: expect.stringMatching(ISO_TIME),
      });
    expect(tables.ticket).toEqual([{ owner: entity_id, number: 7 }]);
    for (const foreign of [ofRival, other.entity_id, code, agent, secretOf(known), secretOf(linked)])
      expect(response.text).not.toContain(foreign);
    expect(response.text).not.toMatch(/secret_hash|code_challenge|"hash"/);
  });

  it('has the refresh families of the customer with their tokens, without a hash', async () => {
    const { entity_id, refresh_token } = await stayOf(service);
    const successor = (await refreshCustomer(service, refresh_token)).body.refresh_token;
    const response = await exportOf(entity_id);
    const {
      refresh_family: families,
      refresh_token: tokens,
      refresh_family_ancestor: ancestors,
    } = response.body.tables;
    expect(families).toEqual([
      expect.objectContaining({ customer_id: entity_id, begun_at: expect.stringMatching(ISO_TIME) }),
    ]);
    expect(tokens).toHaveLength(2);
    for (const row of [...tokens, ...ancestors]) expect(row.family_id).toBe(families[0].id);
    expect(ancestors.length).toBeGreaterThan(0);
    for (const secret of [refresh_token, successor]) expect(response.text).not.toContain(secret.split(':').at(-1));
    expect(response.text).not.toMatch(/[_"]hash"/);
  });

  it('has the raised generation of the customer as the revocation feed has it', async () => {
    const { entity_id } = await newCustomer(service);
    const path = `/admin/identities/${entity_id}/end_sessions`;
    expect((await manage(service, 'POST', path, bearer(ADMIN_TOKEN), {})).status).toBe(200);
    const { tables } = (await exportOf(entity_id)).body;
    const time = expect.stringMatching(ISO_TIME);
    const revocation = { kind: 'generation', value: entity_id, generation: 1, audience: 'customer-api' };
    expect(tables.revocation).toEqual([{ ...revocation, issued_before: time, expires_at: time }]);
  });

  it('has the user of the organization to whom the customer belongs', async () => {
    const agent = await issueAgentToken(service);
    const { body } = await service.post(TOKEN, agentTokenBody({ external_id: 'user-of-exports' }), bearer(agent));
    const { tables } = (await exportOf(body.entity_id)).body;
    expect(tables.organization_user).toEqual([
      expect.objectContaining({ customer_id: body.entity_id, linked_at: expect.stringMatching(ISO_TIME) }),
    ]);
  });

  it('is for the operator only, and each export is an audit event', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    expectInvalidToken(await exportOf(entity_id, access_token));
    await exportOf(entity_id);
    const subject = { kind: 'customer', id: entity_id };
    expect(service.audit.at(-1)).toMatchObject({ event: 'identity.exported', actor: { kind: 'operator' }, subject });
  });

  it('is a 404 for an unknown or erased customer', async () => {
    const { entity_id } = await newCustomer(service);
    await manage(service, 'DELETE', `/admin/identities/${entity_id}`, bearer(ADMIN_TOKEN));
    for (const id of [entity_id, '01890000-0000-7000-8000-000000000000', 'x'])
      expectError(await exportOf(id), { status: 404, error: 'not_found', hint: undefined });
  });
});
