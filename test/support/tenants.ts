import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { Offboarding } from '../../src/operator/registry/offboarding/offboarding.js';
import { agentTokenBody } from './agent-tokens.js';
import { bearer } from './authorization-headers.js';
import { TOKEN } from './cookie-grant.js';
import { issueAgentToken } from './operator-commands.js';
import { PUBLIC_SITE } from './test-registry.js';
import type { UsedService } from './use-service.js';

export const TENANT_ORIGIN = 'https://tenant.example';
const SCOPES = ['customers:own'];

/** The ids of a new organization and of its entries, as the admin API created them. */
export interface Tenant {
  id: string;
  clientId: string;
  email: string;
  agentId: string;
  /** The parameters of a customer's request with the client. */
  ofClient: { client_id: string; organization_id: string; redirect_uri: string };
}

/** A tenant with a client and an agent, which admits the public client of the tests too. */
export async function newTenant(
  { admin }: Pick<UsedService, 'admin'>,
  client: object = {},
  id: string = randomUUID(),
): Promise<Tenant> {
  const [clientId, email] = [randomUUID(), `${randomUUID()}@tenant.example`];
  const create = async (list: string, entry: object) => {
    const response = await admin('POST', `/admin/${list}`, entry);
    expect(response.status).toBe(201);
    return response.body.id;
  };
  await create('organizations', { id, name: 'Tenant', public_clients: [PUBLIC_SITE] });
  await create('clients', {
    ...{ client_id: clientId, name: 'Site', client_type: 'web', organization_id: id },
    ...{ redirect_uris: [`${TENANT_ORIGIN}/`], scopes: SCOPES, ...client },
  });
  const agent = { email, name: 'Agent', password: 'a password of the agent', organization_id: id, scopes: SCOPES };
  const agentId = await create('agents', agent);
  const ofClient = { client_id: clientId, organization_id: id, redirect_uri: `${TENANT_ORIGIN}/` };
  return { id, clientId, email, agentId, ofClient };
}

/** Creates customers as the agent of a tenant. Returns their ids. */
export async function customersOf(service: UsedService, { email, clientId }: Tenant, count: number): Promise<string[]> {
  const token = await issueAgentToken(service, { email, clientId });
  const ids: string[] = [];
  while (ids.length < count) {
    const external_id = randomUUID();
    const { status, body } = await service.post(
      TOKEN,
      agentTokenBody({ client_id: clientId, external_id }),
      bearer(token),
    );
    expect(status).toBe(200);
    ids.push(body.entity_id);
  }
  return ids;
}

/** Carries out what is due now, as the timer of a process does. */
export function runOffboarding({ application }: Pick<UsedService, 'application'>): Promise<void> {
  return application.get(Offboarding, { strict: false }).run();
}
