import { httpClientOf, type TestResponse } from '../../packages/conformance-kit/src/http-client.js';
import { bearer } from '../support/authorization-headers.js';
import { AgentBrowser, BACKEND_CALLBACK, FOR_PUBLIC, FOR_TOKEN, FORM, queryOf } from '../support/authorization-page.js';
import { TestBrowser } from '../support/cookie-grant.js';
import { manage } from '../support/management-api.js';
import { agentTokenOf, type ServiceProcess } from '../support/processes.js';
import { ACME, ACME_AGENT, ACME_BACKEND, ACME_SITE, BACKEND_SECRET } from '../support/test-registry.js';
import { INFO, TRANSFER, transferBody } from '../support/transfers.js';

export type Send = () => Promise<TestResponse>;

interface Target {
  service: ServiceProcess;
  environment: Record<string, string>;
  adminToken: string;
}

/** A request to each route, by method and path, that makes the service use the database if the route ever does. */
export async function requestsToAllRoutes(target: Target): Promise<Record<string, Send>> {
  return { ...(await requestsOfCallers(target)), ...(await requestsOfAgents(target)), ...requestsOfOperators(target) };
}

/** Requests of customers, backends and the cluster. */
async function requestsOfCallers({ service, environment, adminToken }: Target): Promise<Record<string, Send>> {
  const client = httpClientOf(service.url);
  const browser = new TestBrowser(client);
  const { access_token } = (await browser.visit()).body;
  const agentToken = await agentTokenOf(environment);
  const code = { grant_type: 'authorization_code', code: 'any', redirect_uri: BACKEND_CALLBACK };
  const backend = { client_id: ACME_BACKEND, client_secret: BACKEND_SECRET };
  return {
    'POST /v2/customer/token': () => browser.visit(),
    'POST /v2/customer/{organization_id}/{group_id}/token': () =>
      browser.visit({ organization_id: undefined }, `/v2/customer/${ACME}/group/token`),
    'DELETE /v2/customer/token': () => client.send('DELETE', '/v2/customer/token', bearer(access_token)),
    [`GET ${INFO}`]: () => client.send('GET', INFO, bearer(access_token)),
    [`POST ${TRANSFER}`]: () => client.post(TRANSFER, transferBody(), bearer(access_token)),
    'POST /v2/customer/end_sessions': () => client.post('/v2/customer/end_sessions', {}, bearer(access_token)),
    'POST /v2/customer/forget': () =>
      client.post(
        '/v2/customer/forget',
        { client_id: ACME_SITE, organization_id: ACME },
        { cookie: browser.cookie ?? '' },
      ),
    'POST /v2/customer/revoke': () => client.post('/v2/customer/revoke', { client_id: ACME_SITE, token: access_token }),
    'POST /v2/customer/export': () => client.post('/v2/customer/export', { customer_id: ACME }, bearer(agentToken)),
    'POST /v2/customer/erase': () => client.post('/v2/customer/erase', { customer_id: ACME }, bearer(agentToken)),
    'POST /customer/': () => client.post('/customer', {}, bearer(agentToken)),
    'POST /v2/token': () =>
      client.post('/v2/token', new URLSearchParams({ ...code, ...backend }).toString(), { 'content-type': FORM }),
    'DELETE /v2/token': () => client.send('DELETE', '/v2/token', bearer(agentToken)),
    'POST /oauth2/introspect': () =>
      manage(service, 'POST', '/oauth2/introspect', bearer(adminToken), { token: access_token }),
    'POST /oauth2/revoke': () => manage(service, 'POST', '/oauth2/revoke', bearer(adminToken), { token: access_token }),
    'GET /oauth2/revocations': () => manage(service, 'GET', '/oauth2/revocations', bearer(adminToken)),
    'POST /oauth2/revocations': () => manage(service, 'POST', '/oauth2/revocations', bearer(adminToken), {}),
    'GET /oauth2/events': () => manage(service, 'GET', '/oauth2/events', bearer(adminToken)),
    'POST /oauth2/events': () => manage(service, 'POST', '/oauth2/events', bearer(adminToken), {}),
    'GET /health/ready': () => manage(service, 'GET', '/health/ready'),
    'GET /health/live': () => manage(service, 'GET', '/health/live'),
    'GET /metrics': () => manage(service, 'GET', '/metrics'),
    'GET /openapi.json': () => manage(service, 'GET', '/openapi.json'),
    'GET /page.css': () => client.send('GET', '/page.css'),
    'GET /.well-known/jwks.json': () => client.send('GET', '/.well-known/jwks.json'),
    'GET /.well-known/oauth-authorization-server': () => client.send('GET', '/.well-known/oauth-authorization-server'),
  };
}

/** Requests of two browsers at the authorization page, one at the sign-in form and one at the consent form. */
async function requestsOfAgents({ service }: Target): Promise<Record<string, Send>> {
  const newcomer = new AgentBrowser(service);
  const signIn = await newcomer.open(FOR_TOKEN);
  const agent = new AgentBrowser(service);
  const consent = await agent.authorize(FOR_PUBLIC);
  return {
    'POST /sign-in': () => newcomer.submit(signIn, ACME_AGENT),
    'GET /': () => agent.send('GET', `/?${queryOf(FOR_PUBLIC)}`),
    'POST /consent': () => agent.submit(consent, { decision: 'allow' }, '/consent'),
    'POST /sign-out': () => agent.post('/sign-out', { request: queryOf(FOR_PUBLIC) }),
  };
}

/** The id of each new entry, which is none of the registry's. */
const NEW_ID = 'c3e4f2b5-4a68-4d2d-8b64-3a1b9a5c0f44';

/** Requests to the admin API. */
function requestsOfOperators({ service, adminToken }: Target): Record<string, Send> {
  const admin = (method: string, path: string, body?: object) => () =>
    manage(service, method, `/admin/${path}`, bearer(adminToken), body);
  const customer = `customers/${ACME}`;
  const newEntries = {
    organizations: { id: NEW_ID, name: 'New' },
    clients: { client_id: NEW_ID, name: 'New', client_type: 'native', redirect_uris: ['new.app:/callback'] },
    agents: { email: 'new@acme.example', name: 'New', password: 'a new pass phrase', organization_id: ACME },
    'resource-servers': { id: NEW_ID, secret: 'x'.repeat(40), audiences: ['customer-api'] },
  };
  const requests: Record<string, Send> = {
    'GET /admin/customers/{entity_id}': admin('GET', customer),
    'DELETE /admin/customers/{entity_id}': admin('DELETE', customer),
    'GET /admin/customers': admin('GET', `customers?organization_id=${ACME}&external_id=any`),
    'DELETE /admin/customers/{entity_id}/browsers/{browser_id}': admin('DELETE', `${customer}/browsers/${ACME}`),
    'GET /admin/customers/{entity_id}/export': admin('GET', `${customer}/export`),
    'POST /admin/customers/{entity_id}/end_sessions': admin('POST', `${customer}/end_sessions`, {}),
    'DELETE /admin/customers/{entity_id}/refresh-tokens/{session_id}': admin(
      'DELETE',
      `${customer}/refresh-tokens/${ACME}`,
    ),
    'DELETE /admin/organizations/{id}/offboarding': admin('DELETE', `organizations/${ACME}/offboarding`),
    'POST /admin/clients/{client_id}/secret': admin('POST', `clients/${ACME_BACKEND}/secret`, {}),
  };
  for (const [list, entry] of Object.entries(newEntries)) {
    requests[`GET /admin/${list}`] = admin('GET', list);
    requests[`POST /admin/${list}`] = admin('POST', list, entry);
    requests[`GET /admin/${list}/{key}`] = admin('GET', `${list}/${ACME}`);
    requests[`PUT /admin/${list}/{key}`] = admin('PUT', `${list}/${NEW_ID}`, entry);
    requests[`PATCH /admin/${list}/{key}`] = admin('PATCH', `${list}/${ACME}`, { name: 'Changed' });
    requests[`DELETE /admin/${list}/{key}`] = admin('DELETE', `${list}/${ACME}`);
  }
  return requests;
}
