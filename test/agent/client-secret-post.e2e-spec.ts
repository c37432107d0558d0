import { expect, it } from 'vitest';
import { OutputCapture } from '../../packages/conformance-kit/src/output-capture.js';
import { containsSecret } from '../../packages/conformance-kit/src/secret-search.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { FORM } from '../support/authorization-page.js';
import { manage } from '../support/management-api.js';
import { ACME_BACKEND, ACME_SITE, BACKEND_SECRET, testRegistry } from '../support/test-registry.js';
import { type TestResponse } from '../support/test-service.js';
import { newCustomer } from '../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../support/use-service.js';

const SERVER_SECRET = 'resource-server-secret-of-the-test';
const WRONG_SECRET = 'wrong-secret-with-enough-characters';
const SECRETS = [BACKEND_SECRET, SERVER_SECRET, WRONG_SECRET];
const ROUTES = [
  { path: '/oauth2/introspect', client_id: 'chat-api', secret: SERVER_SECRET },
  { path: '/oauth2/revoke', client_id: ACME_BACKEND, secret: BACKEND_SECRET },
];
const AS_FORM = { 'content-type': FORM };

const registry = testRegistry();
registry.resource_servers.push({ id: 'chat-api', secret: SERVER_SECRET, audiences: ['customer-api'] });
/** The log at its lowest level, which has the lines of every other level. */
const capture = new OutputCapture();
const service = useService({ registry, environment: { LOG_LEVEL: 'trace' }, log: capture.log });

/** Requests with a secret in the body: valid ones, and ones that fail in each layer that has seen the body. */
function requestsOf({ client_id, secret }: (typeof ROUTES)[number], token: string) {
  const valid = { client_id, client_secret: secret, token };
  const form = (fields: object) => new URLSearchParams({ ...valid, ...fields }).toString();
  const json = (fields: object) => JSON.stringify({ ...valid, ...fields });
  return [
    { status: 200, text: form({}), headers: AS_FORM },
    { status: 200, text: json({}), headers: {} },
    { status: 401, text: form({ client_secret: WRONG_SECRET }), headers: AS_FORM },
    { status: 401, text: json({ client_id: 'unknown' }), headers: {} },
    { status: 401, text: json({ client_id: secret }), headers: {} },
    { status: 401, text: json({ client_id: ACME_SITE }), headers: {} }, // a client without a secret
    { status: 400, text: json({ token: '' }), headers: {} },
    { status: 400, text: json({ token: { secret } }), headers: {} },
    { status: 400, text: json({}).slice(0, -1), headers: {} },
    { status: 400, text: JSON.stringify([secret]), headers: {} },
    { status: 400, text: `${form({})}&client_secret=${secret}`, headers: AS_FORM },
    { status: 400, text: form({}), headers: { ...AS_FORM, ...basic(client_id, secret) } },
    { status: 400, text: form({}), headers: { ...AS_FORM, ...bearer(ADMIN_TOKEN) } },
    { status: 413, text: json({ token: 'x'.repeat(17_000) }), headers: {} },
    { status: 415, text: form({}), headers: { ...AS_FORM, 'content-encoding': 'gzip' } },
  ];
}

it.each(ROUTES)('the secret in the body of a request to $path reaches no output', async (route) => {
  const responses: TestResponse[] = [];
  const { access_token } = await newCustomer(service);
  for (const { status, text, headers } of requestsOf(route, access_token)) {
    const response = await manage(service, 'POST', route.path, headers, text);
    expect(response.status, text).toBe(status);
    responses.push(response);
  }
  const { text: metrics } = await manage(service, 'GET', '/metrics');
  expect(metrics).toContain(`route="${route.path}"`);
  const sent = responses.map(({ text, headers }) => `${text} ${JSON.stringify([...headers])}`).join('\n');
  const outputs = { metrics, log: capture.text, audit: JSON.stringify(service.audit), responses: sent };
  for (const [name, text] of Object.entries(outputs)) {
    for (const secret of SECRETS) {
      expect(containsSecret(text, secret), `${name}: ${secret}`).toBe(false);
      // the search finds a secret in any of the outputs, plain and encoded
      expect(containsSecret(text + secret, secret)).toBe(true);
      expect(containsSecret(text + Buffer.from(secret).toString('base64'), secret)).toBe(true);
    }
  }
  // each request has its line, so the search has read what the log says about it
  for (const { headers } of responses) expect(capture.about(`${headers.get('x-request-id')}`)).not.toEqual([]);
});
