import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { importJWK, type JWK, SignJWT } from 'jose';
import { pino } from 'pino';
import { afterAll, describe, expect, it } from 'vitest';
import { type InactiveReason } from '../../src/access-token/inactive-reason.js';
import { Ended } from '../../src/feed/ended.entity.js';
import { agentTokenBody, claimsOf, newAgent } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { manage } from '../support/management-api.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { TestIssuer } from '../support/test-issuer.js';
import { ACME, ACME_BACKEND, ACME_SITE, BACKEND_SECRET, RIVAL_SITE, testRegistry } from '../support/test-registry.js';
import { type TestResponse } from '../support/test-service.js';
import { agentTokenPair, INFO, newCustomer, redeem, transferToken } from '../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../support/use-service.js';

const SECRET = 'resource-server-secret-of-the-test';
const OPERATOR = bearer(ADMIN_TOKEN);
const GATEWAY = basic('gateway', SECRET);

const registry = testRegistry();
registry.resource_servers.push(
  { id: 'gateway', secret: SECRET, audiences: ['customer-api', 'agent-api'] },
  { id: 'agent-api-only', secret: SECRET, audiences: ['agent-api'] },
);

const service = useService(async () => {
  idp = await TestIssuer.start();
  const logger = pino({ level: 'info', base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const environment = { TRUSTED_AGENT_ISSUERS: JSON.stringify([idp.trust()]) };
  return { registry, environment, log: { logger, lost: 0, flush: () => undefined } };
});
let idp: TestIssuer;
const lines: Record<string, unknown>[] = [];
afterAll(async () => {
  await idp?.stop();
});

const admin = (method: string, path: string, body?: object) => service.admin(method, `/admin/${path}`, body);

/** Sends a request and returns its response with its log line. */
async function logged(send: (headers: Record<string, string>) => Promise<TestResponse>) {
  const id = randomUUID();
  const response = await send({ 'x-request-id': id });
  const line = lines.find(({ caller_request_id, msg }) => caller_request_id === id && msg === 'request');
  return { response, line };
}
const send = (path: string) => (token: string, as: Record<string, string>) =>
  logged((headers) => manage(service, 'POST', path, { ...as, ...headers }, { token }));
const introspect = send('/oauth2/introspect');
const revoke = send('/oauth2/revoke');
const callInfo = (token: string) => logged((headers) => service.send('GET', INFO, { ...bearer(token), ...headers }));

/** A token with the key of the service and other claims or another header. */
async function signed(claims: object, kid?: string): Promise<string> {
  const [key] = JSON.parse(readFileSync(join(service.database.folder, 'keys.json'), 'utf8')).keys as [JWK];
  const header = { typ: 'at+jwt', alg: 'ES256', kid: kid ?? (key.kid as string) };
  return `dev:${await new SignJWT({ ...claims }).setProtectedHeader(header).sign(await importJWK(key, 'ES256'))}`;
}

const customerToken = async () => (await newCustomer(service)).access_token;
const jwsOf = async () => (await customerToken()).slice('dev:'.length);

/** How each token was made invalid. The signature of these tokens is valid. */
const SIGNED: Partial<Record<InactiveReason, () => Promise<string>>> = {
  other_issuer: async () => signed({ ...claimsOf(await customerToken()), iss: 'https://staging.example' }),
  expired: async () => {
    const token = await customerToken();
    service.clock.advance({ seconds: 30_000 });
    return token;
  },
  not_yet_valid: async () => {
    service.clock.advance({ seconds: 60 });
    const token = await customerToken();
    service.clock.reset();
    return token;
  },
  revoked: async () => {
    const token = await customerToken();
    await service.send('DELETE', TOKEN, bearer(token));
    return token;
  },
  refresh_token_revoked: async () => {
    const { access_token, refresh_token } = await agentTokenPair(service);
    await service.admin('POST', '/oauth2/revoke', { token: refresh_token });
    return access_token;
  },
  ancestor_revoked: async () => {
    const token = await customerToken();
    const moved = await redeem(service, await transferToken(service, token));
    await service.send('DELETE', TOKEN, bearer(token));
    return moved.body.access_token;
  },
  session_ended: async () => {
    const token = await customerToken();
    await service.send('DELETE', TOKEN, bearer(token));
    await service.rowsOf(Ended).delete({ value: claimsOf(token).sid as string });
    return token;
  },
  client_revoked: async () => {
    const client = { client_id: randomUUID(), name: 'New', client_type: 'web', organization_id: ACME };
    await admin('POST', 'clients', { ...client, redirect_uris: ['https://new.example/'] });
    const { body } = await service.post(TOKEN, cookieBody({ client_id: client.client_id, redirect_uri: undefined }));
    await admin('DELETE', `clients/${client.client_id}`);
    return body.access_token;
  },
  customer_generation: async () => {
    const { access_token, entity_id } = await newCustomer(service);
    await admin('DELETE', `customers/${entity_id}`);
    return access_token;
  },
  agent_changed: async () => {
    const { path, email } = await newAgent(service);
    const token = await issueAgentToken(service, { email });
    const byAgent = await service.post(TOKEN, agentTokenBody(), bearer(token));
    await service.admin('PATCH', path, { password: 'another password of the agent' });
    return byAgent.body.access_token;
  },
};

const HINTS: Record<string, RegExp> = {
  no_region: /^token: the region prefix is missing/,
  percent_encoded: /^token: replace %3A by a colon$/,
};

/** Texts that are not signed by a key of the service. */
const UNSIGNED: Partial<Record<InactiveReason, () => Promise<string>>> = {
  malformed: async () => 'dev:MARKED.MARKED',
  percent_encoded: async () => `dev%3A${await jwsOf()}`,
  no_region: jwsOf,
  other_region: async () => `eu:${await jwsOf()}`,
  not_an_access_token: async () => transferToken(service, await customerToken()),
  unknown_key: async () => signed(claimsOf(await customerToken()), 'another-key'),
  invalid_signature: async () => `${(await customerToken()).slice(0, -8)}AAAAAAAA`,
};

describe('a token that is not valid', () => {
  it.each(Object.entries(SIGNED))(
    'is logged with its ids and the reason, which only the operator gets: %s',
    async (reason, invalid) => {
      const token = await invalid();
      const { jti, sub, client_id } = claimsOf(token);
      const ids = { jti, sub, token_client_id: client_id, reason };
      const forOperator = await introspect(token, OPERATOR);
      expect(forOperator.response.body).toEqual({ active: false, inactive_reason: reason });
      expect(forOperator.line).toMatchObject(ids);
      expect(forOperator.line).not.toHaveProperty('resource_server');
      const forServer = await introspect(token, GATEWAY);
      expect(forServer.response.text).toBe('{"active":false}');
      expect(forServer.line).toMatchObject({ ...ids, resource_server: 'gateway' });
      const asBearer = await callInfo(token);
      expect(asBearer.response.status).toBe(401);
      expect(asBearer.response.text).not.toContain(reason);
      expect(asBearer.line).toMatchObject({ ...ids, client_id, organization_id: ACME, error: 'invalid_token' });
    },
  );

  it.each(Object.entries(UNSIGNED))(
    'is logged with the reason alone if its signature is not valid: %s',
    async (reason, invalid) => {
      const token = await invalid();
      const asBearer = await callInfo(token);
      const forServer = await introspect(token, GATEWAY);
      const hint = HINTS[reason] && { error_hint: expect.stringMatching(HINTS[reason]) };
      expect(forServer.response.body).toEqual({ active: false, ...hint });
      const forOperator = await introspect(token, OPERATOR);
      expect(forOperator.response.body).toEqual({ active: false, inactive_reason: reason, ...hint });
      for (const { line } of [asBearer, forServer]) {
        expect(line).toMatchObject({ reason });
        for (const field of ['jti', 'sub', 'token_client_id', 'client_id']) expect(line).not.toHaveProperty(field);
      }
      const parts = token.split(/[:.]|%3A/).filter((part) => part.length > 4);
      expect(parts.filter((part) => lines.some((line) => JSON.stringify(line).includes(part)))).toEqual([]);
    },
  );

  it('is logged as meant for another audience at a resource server or a route that does not accept its kind', async () => {
    const token = await customerToken();
    const { response, line } = await introspect(token, basic('agent-api-only', SECRET));
    expect(response.text).toBe('{"active":false}');
    const { jti } = claimsOf(token);
    expect(line).toMatchObject({ jti, reason: 'other_audience', resource_server: 'agent-api-only' });
    const agentToken = await issueAgentToken(service);
    const { jti: agentJti } = claimsOf(agentToken);
    expect((await callInfo(agentToken)).line).toMatchObject({ jti: agentJti, reason: 'other_audience', status: 401 });
  });

  it('of a trusted issuer is logged with a hash of its jti and no subject, which may be an email address', async () => {
    const token = await idp.sign(service.clock.now(), { sub: 'MARKED@idp.example', jti: 'MARKED-JTI' });
    service.clock.advance({ seconds: 31_536_000 });
    const { line } = await logged((headers) => service.post(TOKEN, agentTokenBody(), { ...bearer(token), ...headers }));
    expect(line).toMatchObject({ status: 401, reason: 'expired', jti: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(JSON.stringify(lines)).not.toContain('MARKED');
  });

  it('is logged with a hash of its id when it is valid, because its subject may be an email address', async () => {
    const token = await idp.sign(service.clock.now(), { sub: 'valid@acme.example' });
    const { line } = await logged((headers) => service.post(TOKEN, agentTokenBody(), { ...bearer(token), ...headers }));
    expect(line).toMatchObject({ status: 200, organization_id: ACME, jti: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(line).not.toHaveProperty('sub');
    expect(line).not.toHaveProperty('token_client_id');
  });
});

it('the log line of a valid token has the ids of the bearer token and the client of the request, or the resource server of an introspection', async () => {
  const token = await issueAgentToken(service);
  const { jti, sub } = claimsOf(token);
  const granted = await logged((headers) =>
    service.post(TOKEN, agentTokenBody({ client_id: ACME_BACKEND }), { ...bearer(token), ...headers }),
  );
  const introspected = await introspect(token, GATEWAY);
  expect(granted.line).toMatchObject({ jti, sub, token_client_id: ACME_SITE, client_id: ACME_BACKEND });
  expect(introspected.line).toMatchObject({ jti, sub, token_client_id: ACME_SITE, resource_server: 'gateway' });
  for (const { line } of [granted, introspected]) expect(line).not.toHaveProperty('reason');
});

describe('the log line of a revocation', () => {
  const BACKEND = basic(ACME_BACKEND, BACKEND_SECRET);

  it('says why a token was not ended', async () => {
    const token = await customerToken();
    expect((await revoke(token, BACKEND)).line).toMatchObject({
      jti: claimsOf(token).jti,
      token_client_id: ACME_SITE,
      client_id: ACME_BACKEND,
      reason: 'other_client',
    });
    for (const unknown of ['x'.repeat(43), `${'x'.repeat(22)}.${'x'.repeat(43)}`])
      expect((await revoke(`dev:${unknown}`, OPERATOR)).line).toMatchObject({ reason: 'not_stored' });
    const damaged = `${token.slice(0, -4)}AAAA`;
    expect((await revoke(damaged, OPERATOR)).line).toMatchObject({ reason: 'invalid_signature' });
    service.clock.advance({ seconds: 30_000 });
    expect((await revoke(token, BACKEND)).line).toMatchObject({ reason: 'other_client' });
    expect((await revoke(token, OPERATOR)).line, 'an expired token is ended too').not.toHaveProperty('reason');
  });

  it('names a resource server with a wrong secret, and no unknown one', async () => {
    const wrong = await introspect(await customerToken(), basic('gateway', 'wrong'));
    expect(wrong.line).toMatchObject({ status: 401, resource_server: 'gateway', error: 'invalid_client' });
    const unknown = await introspect(await customerToken(), basic(RIVAL_SITE, SECRET));
    expect(unknown.line).not.toHaveProperty('resource_server');
  });
});
