import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { refresh } from '../support/agent-tokens.js';
import { AgentBrowser, FOR_CODE, FORM, formOf, queryOf } from '../support/authorization-page.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectInvalidRequest } from '../support/expect-error.js';
import { registryFileOf, writeFileOf } from '../support/registry-files.js';
import { ACME, ACME_BACKEND, BACKEND_SECRET } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

const service = useService();

/** JSON with the escape of a lone surrogate, which JSON.stringify writes for one. */
const LONE = 'x\ud800 and enough characters for a secret';
const RULE = 'must not have lone surrogates';

const ORGANIZATION = { id: 'c4c1b0de-0000-4000-8000-000000000001', name: 'Well formed' };
const CLIENT = { client_id: 'well-formed', name: 'Well formed', client_type: 'web', organization_id: ACME };
const AGENT = { email: 'w@acme.example', name: 'Well formed', password: 'a long pass phrase', organization_id: ACME };
const JWK = {
  ...{ kty: 'EC', crv: 'P-256', kid: 'a', x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU' },
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
};
const SERVER = { id: 'well-formed', secret: 'x'.repeat(32), audiences: ['customer-api'] };

describe('a text with a lone surrogate, which UTF-8 would store as U+FFFD,', () => {
  it.each<[string, object, string]>([
    ['organizations', ORGANIZATION, 'name'],
    ['clients', CLIENT, 'name'],
    ['clients', { ...CLIENT, client_type: 'server' }, 'client_secret'],
    ['agents', AGENT, 'name'],
    ['agents', AGENT, 'password'],
    ['resource-servers', SERVER, 'secret'],
  ])('is rejected by the admin API in %s: %j with the field %s', async (list, entry, field) => {
    const response = await service.admin('POST', `/admin/${list}`, { ...entry, [field]: LONE });
    expectInvalidRequest(response, `${field}: ${RULE}`);
  });

  it('is rejected by the admin API in a list, in a setting and in a change', async () => {
    const uris = {
      ...CLIENT,
      redirect_uris: [`https://well-formed.example/${encodeURI('ü')}`, 'https://x.example/\udfff'],
    };
    expectInvalidRequest(
      await service.admin('POST', '/admin/clients', uris),
      new RegExp(`^redirect_uris: ${RULE}$`, 'm'),
    );
    const grants = { 'urn:ietf:params:oauth:grant-type:jwt-bearer': { issuer: `https://x.example/${LONE}` } };
    const organization = { ...ORGANIZATION, grants };
    expectInvalidRequest(
      await service.admin('POST', '/admin/organizations', organization),
      new RegExp(`^grants: ${RULE}$`, 'm'),
    );
    const jwks = { keys: [{ ...JWK, 'x\ud800': 'in a name' }] };
    const named = { 'urn:ietf:params:oauth:grant-type:jwt-bearer': { issuer: 'https://well-formed.example', jwks } };
    const withName = { ...ORGANIZATION, grants: named };
    expectInvalidRequest(
      await service.admin('POST', '/admin/organizations', withName),
      /: must not have lone surrogates$/m,
    );
    expect((await service.admin('POST', '/admin/clients', CLIENT)).status).toBe(201);
    const path = `/admin/clients/${CLIENT.client_id}`;
    expectInvalidRequest(await service.admin('PATCH', path, { name: LONE }), `name: ${RULE}`);
  });

  it('is a violation of a registry file', async () => {
    const file = writeFileOf(
      service,
      'organizations: [{ id: 390e44e6-f1e6-4368-86dd-b74514508c2e, name: "x\\ud800" }]\n',
    );
    await expect(registryFileOf(service).apply(file)).rejects.toThrow(`organizations[0].name: ${RULE}`);
  });

  it.each(['redirect_uri', 'client_id', 'organization_id'])('is rejected in the parameter %s', async (name) => {
    expectInvalidRequest(await service.post(TOKEN, cookieBody({ [name]: LONE })), new RegExp(`^${name}: `));
  });

  it('is rejected in the credentials of a client', async () => {
    const body = { client_id: ACME_BACKEND, client_secret: LONE, grant_type: 'refresh_token', refresh_token: 'dev:x' };
    expectInvalidRequest(await service.post('/v2/token', body), `client_secret: ${RULE}`);
  });

  it('is ignored in a parameter that the route does not declare', async () => {
    expect((await service.post(TOKEN, cookieBody({ note: LONE }))).status).toBe(200);
  });
});

describe('percent-encoded bytes that are not UTF-8', () => {
  const ENCODED = ['%ED%A0%80', '%ff', 'a%C3', '%C0%80'];

  it.each(ENCODED)('are rejected in a form: %s', async (encoded) => {
    const form = `client_id=${ACME_BACKEND}&client_secret=${BACKEND_SECRET}${encoded}&grant_type=refresh_token`;
    const response = await service.post('/v2/token', form, { 'content-type': FORM });
    expectInvalidRequest(response, 'body: percent-encoded bytes must be UTF-8');
  });

  it.each(ENCODED)('are rejected in the query of a list: %s', async (encoded) => {
    const response = await service.admin('GET', `/admin/clients?cursor=${encoded}`);
    expectInvalidRequest(response, 'query: percent-encoded bytes must be UTF-8');
  });

  it.each(ENCODED)('get an error page of the authorization page, in its query and in its form: %s', async (encoded) => {
    const browser = new AgentBrowser(service);
    expect((await browser.open(`${queryOf(FOR_CODE)}&state=${encoded}`)).status).toBe(400);
    const { action, hidden } = formOf(await browser.open(FOR_CODE));
    const fields = new URLSearchParams({ ...hidden, email: 'agent@acme.example' }).toString();
    expect((await browser.post(action, `${fields}&password=${encoded}`)).text).toContain('must be UTF-8');
  });

  it.each(ENCODED)('are rejected in a path: %s', async (encoded) => {
    expectInvalidRequest(await service.admin('GET', `/admin/clients/${encoded}`), 'path: invalid percent-encoding');
    const path = `/v2/customer/${ACME}/${encoded}/token`;
    expectInvalidRequest(await service.post(path, cookieBody()), 'path: invalid percent-encoding');
  });

  it('are no reason to reject a percent sign that encodes nothing, or any encoded character', async () => {
    const response = await refresh(service, 'dev:x', { client_secret: `100% ${BACKEND_SECRET}` });
    expect(response.body.error).toBe('invalid_client');
    for (const text of ['100%', encodeURIComponent('ü€😀')])
      expectInvalidRequest(
        await service.admin('GET', `/admin/clients?cursor=${text}`),
        'cursor: not a next_cursor of this list',
      );
  });
});

it('a registry file or a secret file that is not UTF-8 is not applied', async () => {
  const latin1 = writeFileOf(service, '');
  writeFileSync(latin1, Buffer.from(`organizations: [{ id: ${ACME}, name: "Bücher" }]`, 'latin1'));
  await expect(registryFileOf(service).apply(latin1)).rejects.toThrow('must be UTF-8');
  writeFileSync(latin1, Buffer.from('ü'.repeat(32), 'latin1'));
  const file = writeFileOf(service, {
    resource_servers: [{ id: 'x', secret_file: latin1, audiences: ['customer-api'] }],
  });
  await expect(registryFileOf(service).apply(file)).rejects.toThrow(
    'secret_file: the file cannot be read, or is not UTF-8',
  );
});
