import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { beforeAll, describe, expect, it } from 'vitest';
import { tryItModule } from '../../packages/try-it/src/try-it.module.js';
import { AS_BACKEND, agentTokenBody } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { FORM } from '../support/authorization-page.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { manage } from '../support/management-api.js';
import { ACME, ACME_SITE, testRegistry } from '../support/test-registry.js';
import { request } from '../support/test-service.js';
import { agentTokenPair } from '../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../support/use-service.js';

const SERVER_SECRET = 'a secret of a resource server with enough characters';
const JSON_TYPE = 'application/json';
const MERGE_PATCH = 'application/merge-patch+json';
const registry = testRegistry();
registry.resource_servers.push({ id: 'customer-chat-api', secret: SERVER_SECRET, audiences: ['customer-api'] });

const service = useService({
  registry,
  modules: [tryItModule()],
  environment: { TRY_IT: 'true' },
});
let agentToken: string;
// biome-ignore lint/suspicious/noExplicitAny: tests look into it
let document: any;
beforeAll(async () => {
  agentToken = (await agentTokenPair(service)).access_token;
  document = (await manage(service, 'GET', '/openapi.json')).body;
});

const { stringify } = JSON;
const asForm = (body: object) => new URLSearchParams(body as Record<string, string>).toString();

/** A body as a validating proxy parses it under a media type of the document. */
function parsed(text: string, type: string): unknown {
  if (type === FORM) return Object.fromEntries(new URLSearchParams(text));
  if (![JSON_TYPE, MERGE_PATCH].includes(type)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether the document admits a body: the media type that matches best describes it. */
function isAdmitted(path: string, method: string, type: string, text: string): boolean {
  const { content } = document.paths[path][method].requestBody;
  const media = content[type] ?? content['*/*'];
  const ajv = addFormats.default(new Ajv2020({ strict: false }));
  return (
    media !== undefined &&
    ajv.validate({ ...media.schema, components: document.components }, content[type] ? parsed(text, type) : text)
  );
}

type Send = (headers: Record<string, string>, text: string) => Promise<{ status: number }>;
const post =
  (path: string, headers = () => ({}) as Record<string, string>): Send =>
  (more, text) =>
    service.post(path, text, { ...headers(), ...more });
const asAgent = () => bearer(agentToken);
const transfer = { bearer_type: 'agent', client_id: ACME_SITE, customer_id: '01890000-0000-7000-8000-000000000000' };
const managed =
  (method: string, path: string, as: Record<string, string>): Send =>
  (headers, text) =>
    manage(service, method, path, { ...as, ...headers }, text);

const ROUTES: [string, string, Send, object][] = [
  [TOKEN, 'post', post(TOKEN), cookieBody()],
  [TOKEN, 'post', post(TOKEN, asAgent), agentTokenBody()],
  ['/v2/customer/{organization_id}/{group_id}/token', 'post', post(`/v2/customer/${ACME}/sales/token`), cookieBody()],
  ['/customer/', 'post', post('/customer/', asAgent), { client_id: ACME_SITE, response_type: 'token' }],
  ['/v2/customer/identity_transfer', 'post', post('/v2/customer/identity_transfer', asAgent), transfer],
  ['/v2/customer/forget', 'post', post('/v2/customer/forget'), { client_id: ACME_SITE, organization_id: ACME }],
  ['/v2/token', 'post', post('/v2/token'), { ...AS_BACKEND, grant_type: 'refresh_token', refresh_token: 'dev:x' }],
  [
    '/oauth2/introspect',
    'post',
    managed('POST', '/oauth2/introspect', basic('customer-chat-api', SERVER_SECRET)),
    { token: 'x' },
  ],
  [
    '/admin/organizations/{key}',
    'patch',
    managed('PATCH', `/admin/organizations/${ACME}`, bearer(ADMIN_TOKEN)),
    { name: 'Acme' },
  ],
];

describe('the OpenAPI document admits the bodies that the service reads, and no others', () => {
  const labels = [JSON_TYPE, 'text/plain', FORM, 'application/octet-stream', MERGE_PATCH];
  const cases = ROUTES.flatMap(([path, method, send, body]) =>
    labels.map((type) => ({ path, method, send, body, type, name: Object.values(body)[0] })),
  );

  it.each(cases)('at $method $path as $type ($name)', async ({ path, method, send, body, type }) => {
    for (const text of [stringify(body), ` ${stringify(body)}`, asForm(body), 'no JSON']) {
      const response = (await send({ 'content-type': type }, text)) as { status: number; body: Record<string, string> };
      // a request that was read as declared may still be rejected for its values, never as unreadable
      const { error, error_description, error_hint = '' } = response.body;
      const isRead =
        error_description !== 'Invalid message' && error !== 'invalid_client' && !error_hint.endsWith(': required');
      expect(isAdmitted(path, method, type, text), text).toBe(isRead);
    }
  });
});

describe('the OpenAPI document', () => {
  it('says that a slash at the end of a path changes nothing, as the service does for each of its paths', async () => {
    expect(document.info.description).toContain('A slash at the end of a path does not change the path');
    for (const [path, { servers, ...methods }] of Object.entries<{ servers: { url: string }[] }>(document.paths)) {
      const port = servers[0]?.url === '/' ? service.managementUrl : service.url;
      const concrete = path.replace(/\/$/, '').replace(/\{\w+\}/g, 'x');
      for (const method of Object.keys(methods)) {
        const [one, other] = await Promise.all(
          [concrete || '/', `${concrete}/`].map((each) => request(port + each, { method: method.toUpperCase() })),
        );
        expect([other?.status, other?.body?.error_hint], path).toEqual([one?.status, one?.body?.error_hint]);
        expect(one?.status, path).not.toBe(405);
        // the try-it page is there with the demo registry only
        if (!path.includes('{') && !path.startsWith('/try')) expect(one?.status, path).not.toBe(404);
      }
    }
  });
});
