import { expect } from 'vitest';
import { agentTokenBody } from './agent-tokens.js';
import { bearer } from './authorization-headers.js';
import { TOKEN } from './cookie-grant.js';
import { WITH_REFRESH } from './customer-refresh.js';
import { manage } from './management-api.js';
import { runCli, type ServiceProcess } from './processes.js';
import { moveOf } from './remember.js';
import { httpClientOf } from './test-service.js';
import { redeem } from './transfers.js';

/** The tenant that the commands of docs/operations.md create, and the user that they search. */
const SITE = { client_id: 'example-site' };
const SITE_ORIGIN = 'https://chat.example.com';
const AGENT = ['--email', 'backend@example.com', '--client-id', 'example-backend', '--scope', 'customers:own'];
const USER = { external_id: 'user-4711' };

/**
 * The token of a customer that the backend of the tenant created, and to which a browser and an app lead.
 *
 * @param environment of commands that use the database of the service
 */
export async function tokenOfUser(
  service: ServiceProcess,
  environment: Record<string, string>,
  adminToken: string,
): Promise<string> {
  const changes = { grant_types: WITH_REFRESH, grants: { identity_token: { remember: ['browser', 'refresh_token'] } } };
  const changed = await manage(service, 'PATCH', '/admin/clients/example-site', bearer(adminToken), changes);
  expect(changed.status).toBe(200);
  const { stdout: agentToken } = await runCli(['agent-token', ...AGENT], environment);
  const client = httpClientOf(service.url);
  const { body } = await client.post(TOKEN, agentTokenBody({ ...SITE, ...USER }), bearer(agentToken.trim()));
  for (const remember of ['browser', 'refresh_token']) {
    const { code, verifier } = await moveOf(client, body.access_token, SITE);
    const proof = { ...SITE, code_verifier: verifier, remember };
    expect((await redeem(client, code, proof, { origin: SITE_ORIGIN })).status).toBe(200);
  }
  return body.access_token;
}
