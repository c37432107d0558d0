import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { pkce } from '../../../test/support/agent-tokens.js';
import { bearer } from '../../../test/support/authorization-headers.js';
import { AgentBrowser, FORM, redirected } from '../../../test/support/authorization-page.js';
import { TOKEN } from '../../../test/support/cookie-grant.js';
import { refreshCustomer } from '../../../test/support/customer-refresh.js';
import { issueAgentToken } from '../../../test/support/operator-commands.js';
import { moveOf } from '../../../test/support/remember.js';
import { TRANSFER } from '../../../test/support/transfers.js';
import { useService } from '../../../test/support/use-service.js';
import { DEMO, demoRegistry } from '../src/demo-registry.js';

const ORIGIN = 'http://localhost:3000';
const { clientId: client_id, organizationId: organization_id } = DEMO;
const folder = mkdtempSync(join(tmpdir(), 'demo-registry-'));

const registry = parse(readFileSync(demoRegistry(folder, ORIGIN), 'utf8'));

const service = useService({ registry });
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
});

const send = (body: object, headers: object = {}, path = TOKEN) =>
  service.post(path, { client_id, ...body }, { origin: ORIGIN, ...headers });
const visit = (path = TOKEN, scope: object = { organization_id }) =>
  send({ grant_type: 'cookie', response_type: 'token', ...scope }, {}, path);

describe('the demo registry', () => {
  it.each(['browser', 'refresh_token'])(
    'lets a customer stay on a second device with remember=%s',
    async (remember) => {
      const { entity_id, access_token } = (await visit()).body;
      const { code, verifier } = await moveOf(service, access_token, { client_id });
      const { status, body, cookies } = await send({
        grant_type: 'identity_token',
        code,
        code_verifier: verifier,
        remember,
      });
      expect({ status, entity_id: body.entity_id }).toEqual({ status: 200, entity_id });
      expect(cookies).toHaveLength(remember === 'browser' ? 2 : 0);
      if (remember === 'browser') return;
      const refreshed = await refreshCustomer(service, body.refresh_token, { client_id });
      expect(refreshed.body).toMatchObject({ entity_id, refresh_token: expect.any(String) });
    },
  );

  it.each([ORIGIN, 'http://localhost:8080', 'http://shop.localhost:8080'])(
    'lets a page of %s move its customer into the app',
    async (origin) => {
      const { entity_id, access_token } = (await visit()).body;
      const { verifier, asked } = pkce();
      const transfer = { bearer_type: 'customer', client_id: DEMO.nativeClientId, ...asked };
      const approved = await service.post(TRANSFER, transfer, { origin, ...bearer(access_token) });
      expect(approved.status).toBe(200);
      const proof = { code: approved.body.identity_transfer_token, code_verifier: verifier };
      const app = { client_id: DEMO.nativeClientId, remember: 'refresh_token' };
      const { body } = await service.post(TOKEN, { grant_type: 'identity_token', ...proof, ...app });
      expect(body).toMatchObject({ entity_id, refresh_token: expect.any(String) });
    },
  );

  it('lets the same client create customers of groups, and an agent find a customer by its external_id', async () => {
    const inGroup = await visit(`/v2/customer/${organization_id}/support/token`, {});
    expect(inGroup.status).toBe(200);
    const agent = await issueAgentToken(service, { email: 'agent@acme.example', clientId: client_id });
    const body = { grant_type: 'agent_token', response_type: 'token', external_id: 'user-1' };
    const [first, second] = [await send(body, bearer(agent)), await send(body, bearer(agent))];
    expect([first.body.created, second.body.created]).toEqual([true, false]);
    expect(second.body.entity_id).toBe(first.body.entity_id);
  });

  it('lets the agent of the backend sign in, and the backend exchange the code, at http://localhost:9000/callback', async () => {
    const redirect_uri = 'http://localhost:9000/callback';
    const { client_secret } = registry.clients.find((each: { client_secret?: string }) => each.client_secret);
    const { email, password } = registry.agents.find((each: { email: string }) => each.email.startsWith('backend@'));
    const backend = { client_id: DEMO.serverClientId, redirect_uri };
    const browser = new AgentBrowser(service);
    const signedIn = await browser.signIn({ email, password }, { response_type: 'code', ...backend, state: 'random' });
    const { target, parameters } = redirected(await browser.send('GET', signedIn.headers.get('location') as string));
    expect({ target, state: parameters.state }).toEqual({ target: redirect_uri, state: 'random' });
    const request = { ...backend, client_secret, grant_type: 'authorization_code', code: parameters.code };
    const form = new URLSearchParams(request as Record<string, string>).toString();
    const { status, body } = await service.post('/v2/token', form, { 'content-type': FORM });
    expect({ status, scope: body.scope }).toEqual({ status: 200, scope: 'customers:own customers:manage' });
  });

  it("lets a page use the token of its user only if the backend requested it with the page's client_id", async () => {
    const agent = await issueAgentToken(service, { email: 'backend@acme.example', clientId: DEMO.serverClientId });
    const statuses = [client_id, DEMO.serverClientId].map(async (id) => {
      const user = { client_id: id, grant_type: 'agent_token', response_type: 'token', external_id: 'user-1' };
      const { access_token } = (await service.post(TOKEN, user, bearer(agent))).body;
      const page = { origin: 'http://localhost:8080', ...bearer(access_token) };
      return (await service.send('GET', '/v2/customer/info', page)).status;
    });
    expect(await Promise.all(statuses)).toEqual([200, 400]);
  });
});

it('agent-token names its database, without the password, if the agent is unknown', async () => {
  const error = await issueAgentToken(service, { email: 'unknown@acme.example' }).catch(({ message }) => message);
  expect(error).toMatch(
    /^--email: unknown agent in the database (sqlite:\/|\w+:\/\/[^@]+\/)[^@]+; set DATABASE_URL or DATA_DIR/,
  );
});
