import { In } from 'typeorm';
import type { Database } from '../../platform/database/database.js';
import { Agent } from '../agent.entity.js';
import { ClientApplication } from '../client-application.entity.js';
import type { Organization } from '../organization.entity.js';
import { ResourceServer } from '../resource-server.entity.js';
import type { Registered } from './check-registry.js';
import type { RegistryDocument } from './registry-document.js';
import { isShortSecret } from './short-secrets.js';

/** What is stored, as far as a file is checked against it. */
export async function registeredIn(
  database: Database,
  organizations: Organization[],
  { clients }: RegistryDocument,
): Promise<Registered> {
  const servers = await database.read(ResourceServer);
  return {
    organizations: new Set(organizations.map(({ id }) => id)),
    resourceServers: new Set(servers.map(({ id }) => id)),
    agents: new Set((await database.read(Agent)).map(({ email }) => email)),
    secretHashes: {
      clients: await hashesOfShortSecrets(database, clients),
      resourceServers: new Map(servers.map(({ id, secretHash }) => [id, secretHash])),
    },
  };
}

/** The stored hashes of the clients whose secrets in the file are short, which are few. The file may be faulty. */
async function hashesOfShortSecrets(database: Database, entries: unknown): Promise<Map<string, string | null>> {
  const short = (Array.isArray(entries) ? entries : []).filter((entry) => isShortSecret(entry?.client_secret));
  if (short.length === 0) return new Map();
  const where = { clientId: In(short.map(({ client_id }) => String(client_id))) };
  const stored = await database.read(ClientApplication, { where });
  return new Map(stored.map(({ clientId, secretHash }) => [clientId, secretHash]));
}
