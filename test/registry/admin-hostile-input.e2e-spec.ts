import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { expectError, expectInvalidRequest, expectInvalidToken, INVALID_MESSAGE } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { exchange, rawRequest } from '../support/raw-http.js';
import { ACME, ACME_BACKEND } from '../support/test-registry.js';
import { request } from '../support/test-service.js';
import { newCustomer } from '../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../support/use-service.js';

const KEYS = [
  'x'.repeat(10_000),
  '%00',
  'a%00b',
  '%F0%9F%92%A9',
  "'%20OR%201=1",
  '__proto__',
  'constructor',
  '%20',
  '..%2f',
];
const TENANT = randomUUID();
/** Hundreds of requests, one after another. */
const SLOW = { timeout: 300_000 };
const AGENT = { email: 'hostile@acme.example', name: 'H', password: 'a long pass phrase', organization_id: ACME };

const service = useService();
/** Method and path of each admin route, with `{parameters}`. */
let routes: [method: string, path: string][];

beforeAll(async () => {
  const { paths } = (await request(`${service.managementUrl}/openapi.json`, {})).body;
  routes = Object.keys(paths)
    .filter((path) => path.startsWith('/admin/'))
    .flatMap((path) => Object.keys(paths[path]).map((method): [string, string] => [method.toUpperCase(), path]))
    .filter(([method]) => method !== 'SERVERS');
  expect((await service.admin('POST', '/admin/organizations', { id: TENANT, name: 'Hostile' })).status).toBe(201);
  const client = { client_id: 'hostile', name: 'H', client_type: 'server', organization_id: TENANT };
  expect((await service.admin('POST', '/admin/clients', client)).status).toBe(201);
});

/** The routes that read a body, with an existing key in their path. */
async function routesWithBody(): Promise<[method: string, path: string][]> {
  const listed = async (list: string) => (await service.admin('GET', `/admin/${list}?limit=1`)).body;
  const keys: Record<string, string> = {
    organizations: TENANT,
    clients: 'hostile',
    agents: (await listed('agents')).agents[0].id,
    'resource-servers': 'hostile-server',
  };
  return routes
    .filter(([method]) => method === 'POST' || method === 'PATCH')
    .filter(([, path]) => path.split('/')[2] !== 'identities')
    .map(([method, path]) => [method, path.replace(/\{\w+\}/, keys[path.split('/')[2] as string] ?? 'x')]);
}

describe('each route of the admin API', SLOW, () => {
  it('responds with 401 to a request without the token of the operator', async () => {
    const { access_token } = await newCustomer(service);
    for (const [method, path] of routes)
      for (const headers of [{}, bearer('wrong-admin-token'), bearer(access_token)])
        expectInvalidToken(await manage(service, method, path.replaceAll(/\{\w+\}/g, 'x'), headers));
  });

  it('responds with 404 or 400 to a hostile key, of any length', async () => {
    const withKey = routes.filter(([, path]) => path.includes('{'));
    expect(withKey.length).toBeGreaterThan(13);
    for (const [method, path] of withKey) {
      for (const key of KEYS) {
        const { status, body } = await service.admin(
          method,
          path.replace(/\{\w+\}/, key),
          method === 'GET' ? undefined : {},
        );
        expect([method, path, key.slice(0, 20), status, body.error]).toEqual([
          ...[method, path, key.slice(0, 20)],
          ...(status === 400 ? [400, 'invalid_request'] : [404, 'not_found']),
        ]);
      }
      const broken = await service.admin(method, path.replace(/\{\w+\}/, '%E0%A4%A'));
      expect([method, path, broken.status]).toEqual([method, path, 400]);
    }
  });

  it('ignores a body that the route does not read', async () => {
    for (const body of ['not JSON', '[]', 'x'.repeat(20_000)]) {
      expect((await service.admin('DELETE', '/admin/clients/unknown', body)).status).toBe(404);
      expect((await service.admin('DELETE', `/admin/identities/${randomUUID()}`, body)).status).toBe(404);
    }
  });
});

describe('each route of the admin API that reads a body', SLOW, () => {
  it('rejects a body that is not a JSON object', async () => {
    for (const [method, path] of await routesWithBody()) {
      for (const body of ['{', 'null,', '\uFEFF{}', "{'name':1}", 'x=1']) {
        const description = INVALID_MESSAGE;
        expectError(await service.admin(method, path, body), {
          status: 400,
          error: 'invalid_request',
          description,
          hint: /^body: /,
        });
      }
      for (const body of ['[]', 'null', '7', '"text"', 'true'])
        expectInvalidRequest(await service.admin(method, path, body), 'body: must be a JSON object');
      for (const body of ['{"name":"a","name":"b"}', '{"old_valid_for":1,"old_valid_f\\u006fr":2}'])
        expectInvalidRequest(await service.admin(method, path, body), 'body: a parameter is given more than once');
    }
  });

  it('rejects each field of a wrong type, and never fails', async () => {
    const complete: Record<string, object> = {
      organizations: { id: randomUUID(), name: 'N', license: {}, public_clients: [], grants: {} },
      clients: {
        ...{ client_id: 'n', name: 'N', client_type: 'web', organization_id: ACME, client_secret: 's'.repeat(32) },
        ...{ redirect_uris: [], redirect_uri_match: 'exact', origins: [], grant_types: [], scopes: [], grants: {} },
      },
      agents: { ...AGENT, scopes: [] },
      'resource-servers': { id: 'n', secret: 's'.repeat(32), audiences: [] },
    };
    const wrong = [7, -1.5e308, true, 'x'.repeat(15_000), { a: 1 }, [[]], [{}], [null], ''];
    for (const [list, entry] of Object.entries(complete)) {
      for (const field of Object.keys(entry)) {
        for (const value of wrong) {
          const { status, body } = await service.admin('POST', `/admin/${list}`, { ...entry, [field]: value });
          const rejected = [list, field, status, body.error];
          expect(rejected).toEqual([list, field, 400, 'invalid_request']);
          expect(body.error_hint).toMatch(new RegExp(`^${field}\\b`));
        }
      }
    }
  });

  it.each(['60', 1.5, -1, 2_592_001, 1e308, null, true, [], [60], {}, ''])(
    'rejects old_valid_for %j for a new secret, and changes no secret',
    async (old_valid_for) => {
      const before = (await service.admin('GET', '/admin/clients/hostile')).text;
      const response = await service.admin('POST', '/admin/clients/hostile/secret', { old_valid_for });
      expectInvalidRequest(response, /^old_valid_for: /);
      expect((await service.admin('GET', '/admin/clients/hostile')).text).toBe(before);
    },
  );
});

describe('a request to the admin API', () => {
  it.each([
    [
      'with two Authorization headers',
      [`Authorization: Bearer ${ADMIN_TOKEN}`, `Authorization: Bearer ${ADMIN_TOKEN}`],
    ],
    ['with a token of 8,000 characters', [`Authorization: Bearer ${'t'.repeat(8_000)}`]],
    ['with the token twice in one header', [`Authorization: Bearer ${ADMIN_TOKEN} ${ADMIN_TOKEN}`]],
    ['with the token in a cookie', [`Cookie: authorization=Bearer%20${ADMIN_TOKEN}`]],
  ])('%s gets 401', async (_what, headers) => {
    for (const path of ['/admin/clients', `/admin/clients?access_token=${ADMIN_TOKEN}`]) {
      const response = await exchange(service.managementUrl, rawRequest(`GET ${path}`, '', headers));
      expect([path, response.status]).toEqual([path, 401]);
    }
  });

  it('cannot change an entry of the registry file by any spelling of its key', async () => {
    for (const key of [ACME_BACKEND, ACME_BACKEND.replace(/^./, (c) => `%${c.charCodeAt(0).toString(16)}`)]) {
      const conflict = { status: 409, error: 'conflict', hint: /the registry file/ };
      expectError(await service.admin('DELETE', `/admin/clients/${key}`), conflict);
      expectError(await service.admin('POST', `/admin/clients/${key}/secret`, {}), conflict);
    }
  });
});
