import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { pkce } from '../../../test/support/agent-tokens.js';
import { bearer } from '../../../test/support/authorization-headers.js';
import { TOKEN } from '../../../test/support/cookie-grant.js';
import { issueAgentToken } from '../../../test/support/operator-commands.js';
import { temporaryFolder } from '../../../test/support/project-files.js';
import { TRANSFER } from '../../../test/support/transfers.js';
import { useService } from '../../../test/support/use-service.js';
import { DEMO, demoRegistry } from '../src/demo-registry.js';

const ORIGIN = 'http://localhost:3000';
const { clientId: client_id, organizationId: organization_id } = DEMO;
const registry = parse(readFileSync(demoRegistry(temporaryFolder('demo-registry'), ORIGIN), 'utf8'));

const service = useService({ registry });

const send = (body: object, headers: object = {}, path = TOKEN) =>
  service.post(path, { client_id, ...body }, { origin: ORIGIN, ...headers });
const visit = (path = TOKEN, scope: object = { organization_id }) =>
  send({ grant_type: 'cookie', response_type: 'token', ...scope }, {}, path);

describe('the demo registry', () => {
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

it('a demo registry gets the URL of a later start, and keeps its other URLs', () => {
  const folder = temporaryFolder('moved-demo-registry');
  const callback = registry.clients[1].redirect_uris.at(-1);
  for (const url of ['http://localhost', 'http://[::1]:3000', 'https://demo.example', 'http://localhost:8080']) {
    const { clients } = parse(readFileSync(demoRegistry(folder, url), 'utf8'));
    const redirect_uris = ['http://localhost:3000/', `${url}/`, `${url}/try/signed-in`];
    expect(clients[0]).toMatchObject({ redirect_uris, origins: registry.clients[0].origins });
    expect(clients[1].redirect_uris).toEqual([...redirect_uris, callback]);
  }
});

it('agent-token names its database, without the password, if the agent is unknown', async () => {
  const error = await issueAgentToken(service, { email: 'unknown@acme.example' }).catch(({ message }) => message);
  expect(error).toMatch(
    /^--email: unknown agent in the database (sqlite:\/|\w+:\/\/[^@]+\/)[^@]+; set DATABASE_URL or DATA_DIR/,
  );
});
