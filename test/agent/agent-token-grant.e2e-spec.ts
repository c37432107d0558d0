import { describeGrant } from '@customer-authorization/conformance-kit';
import { beforeEach, describe, expect, it } from 'vitest';
import { AgentTokenGrant } from '../../src/grants/agent-token/agent-token.grant.js';
import { agentTokenBody, claimsOf } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { expectInvalidRequest } from '../support/expect-error.js';
import { expectNoCustomerCreated, identitiesOf } from '../support/identities.js';
import { issueAgentToken } from '../support/operator-commands.js';
import {
  ACME,
  ACME_ORIGIN,
  ACME_PAGE,
  ACME_SITE,
  PUBLIC_SITE,
  RIVAL,
  RIVAL_AGENT,
  RIVAL_ORIGIN,
  RIVAL_SITE,
  testRegistry,
  UNKNOWN_CUSTOMER,
} from '../support/test-registry.js';
import { expectSameResponse } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** May use `agent_token` and no other grant. */
const IMPORT = 'acme-import';

const registry = testRegistry();
registry.clients.push({
  client_id: IMPORT,
  name: 'Acme import',
  client_type: 'server',
  organization_id: ACME,
  grant_types: ['agent_token'],
});

/** The routes of the grant: protocol §4.3, and protocol §4.6, which takes no `grant_type`. */
const ROUTES: [string, object][] = [
  [TOKEN, { grant_type: 'agent_token' }],
  ['/customer/', { grant_type: undefined }],
];

const service = useService({ registry });
let ofAcme: string;
let ofRival: string;
beforeEach(async () => {
  ofAcme = await issueAgentToken(service);
  ofRival = await issueAgentToken(service, { email: RIVAL_AGENT.email, clientId: RIVAL_SITE });
});

// each request is valid, and leads to a customer of the requested organization
describeGrant(AgentTokenGrant, { valid: () => ({ response_type: 'token' }), anyOrganization: true });

describe.each(ROUTES)('the agent token grant at %s', (path, fixed) => {
  const requestToken = (body: object = {}, headers: Record<string, string> = bearer(ofAcme)) =>
    service.post(path, agentTokenBody({ ...fixed, ...body }), headers);
  const expectRejected = async (body: object, parameter: string, error?: string, description?: string) => {
    await expectNoCustomerCreated(service, () => requestToken(body), parameter, error, description);
  };

  it('creates a customer if no entity_id is given, and responds with exactly the fields of protocol §4.9', async () => {
    const { status, body, cookies } = await requestToken();
    expect(status).toBe(200);
    expect(body).toEqual({
      access_token: expect.stringMatching(/^dev:[\w-]+\.[\w-]+\.[\w-]+$/),
      client_id: ACME_SITE,
      entity_id: expect.stringMatching(UUID_V7),
      expires_in: 28_800,
      token_type: 'Bearer',
      organization_id: ACME,
    });
    expect(cookies).toEqual([]);
    expect(await rowOf(body.entity_id)).toMatchObject({ creator: 'agent', organizationId: ACME });
  });

  it('issues a customer token that names the agent and the session of the agent token that it was issued with', async () => {
    const { body } = await requestToken();
    const { sub, aud, client_id, organization_id, ...more } = claimsOf(body.access_token);
    expect({ sub, aud, client_id, organization_id }).toEqual({
      sub: body.entity_id,
      aud: 'customer-api',
      client_id: ACME_SITE,
      organization_id: ACME,
    });
    const agent = claimsOf(ofAcme);
    expect(more).toMatchObject({ gen: expect.any(Number), gty: 'agent_token', jti: expect.stringMatching(UUID) });
    expect(more.act).toEqual({ sub: agent.sub, sid: agent.sid, ep: 0, client_id: agent.client_id });
    expect(Object.keys(more).sort()).toEqual(['act', 'exp', 'gen', 'gty', 'iat', 'iss', 'jti']);
  });

  it('issues a new token for an existing customer and changes nothing about the customer', async () => {
    const first = await requestToken();
    const { entity_id } = first.body;
    const row = await rowOf(entity_id);
    const before = await identitiesOf(service).count();
    service.clock.advance({ seconds: 90_000 });
    const again = await requestToken({ entity_id }, bearer(await issueAgentToken(service)));
    expect(again).toMatchObject({ status: 200, body: { entity_id, client_id: ACME_SITE, organization_id: ACME } });
    expect(again.body.access_token).not.toBe(first.body.access_token);
    expect(await rowOf(entity_id)).toEqual(row);
    expect(await identitiesOf(service).count()).toBe(before);
  });

  it('gives the same response, byte for byte, for an unknown customer and one of another organization', async () => {
    const byBrowser = await service.post(TOKEN, cookieBody({ client_id: RIVAL_SITE, organization_id: RIVAL }));
    const byAgent = await service.post(path, agentTokenBody({ ...fixed, client_id: RIVAL_SITE }), bearer(ofRival));
    const ids = [UNKNOWN_CUSTOMER, byBrowser.body.entity_id, byAgent.body.entity_id];
    const send = (entity_id: string) => (headers: object) =>
      requestToken({ entity_id }, { ...bearer(ofAcme), ...headers });
    await expectSameResponse(...ids.map(send));
    await expectRejected({ entity_id: UNKNOWN_CUSTOMER }, 'entity_id');
    await expectRejected({ entity_id: byAgent.body.entity_id, client_id: PUBLIC_SITE }, 'entity_id');
  });

  it('accepts the organization_id of the agent and no other', async () => {
    expect(await requestToken({ organization_id: ACME })).toMatchObject({
      status: 200,
      body: { organization_id: ACME },
    });
    const rivals = await service.post(TOKEN, agentTokenBody({ client_id: RIVAL_SITE }), bearer(ofRival));
    const { entity_id } = rivals.body;
    for (const more of [{}, { client_id: PUBLIC_SITE }, { client_id: RIVAL_SITE, entity_id }])
      await expectRejected({ organization_id: RIVAL, ...more }, 'organization_id');
  });

  it('does not read or set identity cookies', async () => {
    const visit = await service.post(TOKEN, cookieBody());
    const { status, body, cookies } = await requestToken({}, { ...bearer(ofAcme), cookie: cookieHeader(visit) });
    expect({ status, cookies }).toEqual({ status: 200, cookies: [] });
    expect(body.entity_id).not.toBe(visit.body.entity_id);
  });
});

describe('protocol §4.6: the older route', () => {
  it('accepts an Origin and a redirect_uri of the client only, as the kit checks for the grant', async () => {
    const send = (more: object, headers: object = {}) =>
      service.post('/customer/', agentTokenBody(more), { ...bearer(ofAcme), ...headers });
    expect((await send({ redirect_uri: ACME_PAGE }, { origin: ACME_ORIGIN })).status).toBe(200);
    expectInvalidRequest(await send({}, { origin: RIVAL_ORIGIN }), /^Origin: /);
    expectInvalidRequest(await send({ redirect_uri: `${ACME_PAGE}x` }), /^redirect_uri: /);
  });

  it('runs the agent token grant for any grant_type in the body', async () => {
    for (const grant_type of ['cookie', 0]) {
      expect((await service.post('/customer/', agentTokenBody({ grant_type }))).status).toBe(401);
      const response = await service.post('/customer/', agentTokenBody({ grant_type }), bearer(ofAcme));
      expect(response).toMatchObject({ status: 200, cookies: [] });
    }
  });
});

function rowOf(entityId: string) {
  return identitiesOf(service).findOneBy({ entityId });
}
