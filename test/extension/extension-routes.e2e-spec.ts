import { beforeAll, describe, expect, it } from 'vitest';
import { signAgentToken } from '../../packages/conformance-kit/src/agent-token.js';
import { OutputCapture } from '../../packages/conformance-kit/src/output-capture.js';
import { bearer } from '../support/authorization-headers.js';
import { DEVICE, deviceExtension } from '../support/device-extension.js';
import { expectError, expectInvalidRequest, expectInvalidToken, MALFORMED } from '../support/expect-error.js';
import { beginWindow } from '../support/limit-windows.js';
import { ACME, ACME_AGENT, ACME_ORIGIN, ACME_SITE, RIVAL, RIVAL_ORIGIN } from '../support/test-registry.js';
import { request } from '../support/test-service.js';
import { serviceOfTest, useService } from '../support/use-service.js';

describe('the routes of an extension', () => {
  const output = new OutputCapture();
  const environment = { RATE_LIMIT: 'tokens=1000/60' };
  const service = useService({ ...deviceExtension, environment, log: output.log });
  let customer: { access_token: string; entity_id: string };
  beforeAll(async () => {
    customer = (await service.visit()).body;
  });

  const start = { client_id: ACME_SITE, organization_id: ACME };
  const agentToken = (scope: string) =>
    signAgentToken(service, { email: ACME_AGENT.email, clientId: ACME_SITE, scope });
  const approve = (body: object | string, headers: Record<string, string> = {}) =>
    service.post(`${DEVICE}/approve`, body, { ...bearer(customer.access_token), ...headers });

  it('gives a route the checked client, its organization and the network of the caller', async () => {
    const { status, body } = await service.post(`${DEVICE}/start`, start, { origin: ACME_ORIGIN });
    expect({ status, body }).toEqual({
      status: 200,
      body: { client: ACME_SITE, organization: ACME, network: expect.stringMatching(/7f00:1$/) },
    });
  });

  it('rejects an unknown organization', async () => {
    const response = await service.post(`${DEVICE}/start`, { ...start, organization_id: 'x' });
    expectInvalidRequest(response, 'organization_id: unknown');
  });

  it('counts a request whose client is checked against the limit tokens of the client', async () => {
    const limited = await serviceOfTest({ ...deviceExtension, environment: { RATE_LIMIT: 'tokens=2/60' } });
    beginWindow(limited);
    const responses = [];
    for (let i = 0; i < 3; i++) responses.push(await limited.post(`${DEVICE}/start`, start));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(Number(responses[2]?.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  it('names the client, the organization and the pattern of the route in the log', async () => {
    const { headers } = await service.post(`${DEVICE}/start`, { ...start, organization_id: 'x' });
    const lines = output.about(headers.get('x-request-id') as string);
    expect(JSON.parse(lines[0] as string)).toMatchObject({
      client_id: ACME_SITE,
      route: `${DEVICE}/start`,
      status: 400,
    });
  });

  it('gives a route the customer of the bearer token, and the validated body', async () => {
    const { body } = await approve({ user_code: 'ABCDEF' }, { origin: ACME_ORIGIN });
    expect(body).toEqual({ text: `${customer.entity_id} ABCDEF` });
    expectInvalidRequest(await approve({ user_code: 'abc' }), 'user_code: must be six capital letters');
  });

  it('reads a form only on a route that declares it', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expect((await approve('user_code=ABCDEF', form)).status).toBe(200);
    const text = new URLSearchParams(start).toString();
    const error = { status: 400, error: 'invalid_request', description: 'Invalid message', hint: 'body: not JSON' };
    expectError(await service.post(`${DEVICE}/start`, text, form), error);
  });

  it('rejects a bearer token of the wrong kind before it reads the body', async () => {
    expectInvalidToken(await service.post(`${DEVICE}/approve`, 'no JSON'));
    expectInvalidToken(await approve('no JSON', bearer(await agentToken('customers:own'))));
    expectInvalidToken(await service.send('GET', `${DEVICE}/requests`, bearer(customer.access_token)));
  });

  it('rejects an Origin of another client than that of the bearer token', async () => {
    const response = await approve({ user_code: 'ABCDEF' }, { origin: RIVAL_ORIGIN });
    expectInvalidRequest(response, "Origin: not one of the client's");
  });

  it('requires the declared scope of an agent', async () => {
    const find = async (scope: string, query = '') =>
      service.send('GET', `${DEVICE}/requests${query}`, bearer(await agentToken(scope)));
    expect((await find('customers:own', '?limit=5&limit_of_another=')).body).toEqual({
      text: expect.stringMatching(/ 5$/),
    });
    const hint = 'scope: customers:own is required';
    expectError(await find('customers:other'), { status: 403, error: 'insufficient_scope', hint });
    expectInvalidRequest(await find('customers:own', '?limit=five'), 'limit: must be a number');
    const twice = { status: 400, error: 'invalid_request', description: MALFORMED, hint: /more than once/ };
    expectError(await find('customers:own', '?limit=5&limit=6'), twice);
  });

  it('checks a client in the organization of the bearer token', async () => {
    const ofCaller = (body: object) => service.post(`${DEVICE}/of_caller`, body, bearer(customer.access_token));
    expect((await ofCaller({ client_id: ACME_SITE })).body).toEqual({ text: `customer ${ACME}` });
    const hint = 'organization_id: must be the organization of the bearer token';
    expectInvalidRequest(await ofCaller({ client_id: ACME_SITE, organization_id: RIVAL }), hint);
    expectInvalidRequest(await ofCaller({ client_id: 'rival-site' }), 'client_id: not usable in this organization');
  });

  it('gives a route the cookies of the browser and sets cookies', async () => {
    const response = await service.post(`${DEVICE}/browser`, start, { cookie: 'a=1' });
    expect(response.body).toEqual({ text: 'a=1 undefined' });
    expect(response.cookies).toEqual(['device=1']);
  });

  it('checks the client in the query of a route without a body, and gives the route its parameters', async () => {
    const find = (query: object, headers: Record<string, string> = {}) =>
      service.send('GET', `${DEVICE}/settings?${new URLSearchParams({ ...query })}`, { cookie: 'a=1', ...headers });
    const { status, body, headers } = await find(start, { origin: ACME_ORIGIN });
    expect([status, body]).toEqual([200, { text: `${ACME_SITE} true a=1` }]);
    expect(headers.get('access-control-allow-credentials')).toBe('true');
    expectInvalidRequest(await find({ client_id: ACME_SITE }), 'organization_id: required');
  });

  it('admits pages of every registered origin, without credentials, to a route with @AnyOrigin', async () => {
    const { status, headers } = await service.send('GET', `${DEVICE}/versions`, { origin: RIVAL_ORIGIN });
    expect(status).toBe(200);
    expect(headers.get('access-control-allow-origin')).toBe(RIVAL_ORIGIN);
    expect(headers.get('access-control-allow-credentials')).toBeNull();
  });

  it.each([
    ['start', null],
    ['approve', null],
    ['browser', 'true'],
    ['screen-7', 'true'],
  ])('responds to a preflight request and to a page for /%s, with credentials: %s', async (path, credentials) => {
    const headers = { origin: ACME_ORIGIN, 'access-control-request-method': 'POST' };
    for (const response of [
      await service.send('OPTIONS', `${DEVICE}/${path}`, headers),
      await service.post(`${DEVICE}/${path}`, {}, headers),
    ]) {
      expect(response.headers.get('access-control-allow-origin')).toBe(ACME_ORIGIN);
      expect(response.headers.get('access-control-allow-credentials')).toBe(credentials);
      expect(response.headers.get('vary')).toBe('Origin');
    }
  });

  it('responds 405 to another method of a route, and 404 on the other port', async () => {
    const response = await service.send('DELETE', `${DEVICE}/start`);
    expectError(response, { status: 405, error: 'method_not_allowed', hint: undefined });
    expect(response.headers.get('allow')).toBe('POST');
    expect((await request(`${service.managementUrl}/devices`, {})).body).toEqual({ text: '0' });
    expect((await request(`${service.url}/devices`, {})).status).toBe(404);
  });

  it('responds 405 to another method of a route with a parameter within a segment, and 404 to another segment', async () => {
    expect((await service.post(`${DEVICE}/screen-7`, start)).body).toEqual({ text: '7' });
    const response = await service.send('DELETE', `${DEVICE}/screen-7`);
    expectError(response, { status: 405, error: 'method_not_allowed', hint: undefined });
    expect(response.headers.get('allow')).toBe('POST');
    expect((await service.send('DELETE', `${DEVICE}/screen`)).status).toBe(404);
  });

  it('describes the routes in the OpenAPI document with their bodies, queries and error responses', async () => {
    const { paths } = (await request(`${service.managementUrl}/openapi.json`, {})).body;
    const { requestBody, responses, security } = paths[`${DEVICE}/start`].post;
    expect(requestBody.content['application/json'].schema.required).toEqual(['client_id', 'organization_id']);
    expect([Object.keys(responses), security]).toEqual([['200', '400', '413', '415', '429', '500', '503'], []]);
    const { get } = paths[`${DEVICE}/requests`];
    expect([Object.keys(get.responses), get.security]).toEqual([
      ['200', '400', '401', '403', '500', '503'],
      [{ bearer: [] }],
    ]);
    expect(get.parameters.map(({ name }: { name: string }) => name)).toEqual(['limit']);
  });
});
