import { beforeAll, describe, expect, it } from 'vitest';
import { signAgentToken } from '../../packages/conformance-kit/src/agent-token.js';
import { agentTokenBody } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { END_SESSIONS, endSessions, endSessionsAsOperator } from '../support/end-sessions.js';
import { expectError, expectInvalidRequest, expectInvalidToken } from '../support/expect-error.js';
import { identitiesOf } from '../support/identities.js';
import { beginWindow } from '../support/limit-windows.js';
import { manage } from '../support/management-api.js';
import { issueAgentToken } from '../support/operator-commands.js';
import {
  ACME,
  ACME_AGENT,
  ACME_ORIGIN,
  ACME_SITE,
  RIVAL_AGENT,
  RIVAL_ORIGIN,
  RIVAL_SITE,
} from '../support/test-registry.js';
import { expectSameResponse, infoStatus, newCustomer } from '../support/transfers.js';
import { ADMIN_TOKEN, serviceOfTest, useService } from '../support/use-service.js';

const UNKNOWN = '01890000-0000-7000-8000-000000000000';

const service = useService();
let agent: string;
beforeAll(async () => {
  agent = await issueAgentToken(service);
});

const asOperator = (entityId: string) => endSessionsAsOperator(service, ADMIN_TOKEN, entityId);

describe('protocol §4.14: who may end the sessions of a customer', () => {
  it.each<[string, object, RegExp]>([
    ['another customer_id', { customer_id: UNKNOWN }, /^customer_id: must be the customer of the bearer token/],
    ['a customer_id that is no UUID', { customer_id: 'x' }, /^customer_id: must be a UUID/],
    ['browsers as a string', { browsers: 'true' }, /^browsers: must be a boolean/],
    ['an empty customer_id', { customer_id: '' }, /^customer_id: must not be empty/],
  ])('a customer token with %s is rejected and ends nothing', async (_, body, hint) => {
    const { access_token } = await newCustomer(service);
    expectInvalidRequest(await endSessions(service, access_token, body), hint);
    expect(await infoStatus(service, access_token)).toBe(200);
  });

  it('a customer may send its own customer_id, or an empty body', async () => {
    for (const body of ['', 'own']) {
      const { entity_id, access_token } = await newCustomer(service);
      const sent = body === '' ? body : JSON.stringify({ customer_id: entity_id });
      const response = await service.post(END_SESSIONS, sent, bearer(access_token));
      expect(response).toMatchObject({ status: 200, body: {} });
      expect(await infoStatus(service, access_token)).toBe(401);
    }
  });

  it('an agent needs customers:own and the customer_id of its organization', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    expectInvalidRequest(await endSessions(service, agent), 'customer_id: required, or external_id');
    const { email } = ACME_AGENT;
    const narrow = await signAgentToken(service, { email, clientId: ACME_SITE, scope: 'chats:read' });
    const refused = await endSessions(service, narrow, { customer_id: entity_id });
    expectError(refused, { status: 403, error: 'insufficient_scope', hint: /^scope: customers:own / });
    const rival = await issueAgentToken(service, { email: RIVAL_AGENT.email, clientId: RIVAL_SITE });
    await expectSameResponse(
      (headers) => endSessions(service, rival, { customer_id: entity_id }, headers),
      (headers) => endSessions(service, rival, { customer_id: UNKNOWN }, headers),
    );
    expect(await infoStatus(service, access_token)).toBe(200);
  });

  it('a present Origin must belong to the client of the token', async () => {
    const { access_token } = await newCustomer(service);
    expectInvalidRequest(await endSessions(service, access_token, {}, { origin: RIVAL_ORIGIN }), /^Origin: /);
    expect(await infoStatus(service, access_token)).toBe(200);
    const response = await endSessions(service, access_token, {}, { origin: ACME_ORIGIN });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe(ACME_ORIGIN);
    expect(response.headers.get('access-control-allow-credentials')).toBe('true');
  });

  it('the operator gets 404 for an unknown or erased customer, and no other caller may use the admin route', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    for (const id of [UNKNOWN, 'x'])
      expectError(await asOperator(id), { status: 404, error: 'not_found', hint: undefined });
    expectInvalidToken(await endSessionsAsOperator(service, access_token, entity_id));
    expect((await service.post(`/admin/identities/${entity_id}/end_sessions`, {}, bearer(ADMIN_TOKEN))).status).toBe(
      404,
    );
    expect(await infoStatus(service, access_token)).toBe(200);
    await service.admin('DELETE', `/admin/identities/${entity_id}`);
    const before = await identitiesOf(service).findOneByOrFail({ entityId: entity_id });
    expect((await asOperator(entity_id)).status).toBe(404);
    expect(await identitiesOf(service).findOneByOrFail({ entityId: entity_id })).toEqual(before);
  });

  it('the requests count against the limit tokens of the client', async () => {
    const limited = await serviceOfTest({ environment: { RATE_LIMIT: 'tokens=2/60' } });
    beginWindow(limited);
    const { access_token } = await newCustomer(limited);
    const first = await endSessions(limited, access_token, { customer_id: UNKNOWN });
    expect(first.status).toBe(400);
    const response = await endSessions(limited, access_token);
    expectError(response, { status: 429, error: 'temporarily_unavailable', hint: undefined });
    expect(await infoStatus(limited, access_token)).toBe(200);
  });

  it('the audit log and a metric name the kind of the actor', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    await endSessions(service, access_token);
    const byAgent = (await service.post(TOKEN, agentTokenBody({ entity_id }), bearer(agent))).body.access_token;
    expect(await infoStatus(service, byAgent)).toBe(200);
    await endSessions(service, agent, { customer_id: entity_id, browsers: true });
    expect(await infoStatus(service, byAgent)).toBe(401);
    await asOperator(entity_id);
    const events = service.audit.filter(
      ({ event, subject }) => event === 'sessions.ended' && subject?.id === entity_id,
    );
    expect(events.map(({ actor }) => actor.kind)).toEqual(['customer', 'agent', 'operator']);
    expect(events[0]).toMatchObject({ actor: { id: entity_id }, clientId: ACME_SITE, details: { browsers: false } });
    expect(events[1]).toMatchObject({ outcome: 'success', organizationId: ACME, details: { browsers: true } });
    const { text } = await manage(service, 'GET', '/metrics');
    for (const kind of ['customer', 'agent', 'operator'])
      expect(text).toMatch(new RegExp(`^cas_sessions_ended_total\\{actor="${kind}"\\} [1-9]`, 'm'));
  });
});
