import { randomUUID } from 'node:crypto';
import type { ObjectLiteral } from 'typeorm';
import { sha256 } from '../../platform/secret.js';
import type { Agent } from '../agent.entity.js';
import { hashPassword, isPasswordOf } from '../agent-password.js';
import type { ClientApplication } from '../client-application.entity.js';
import type { Organization } from '../organization.entity.js';
import { NO_PREVIOUS_SECRETS } from '../previous-secrets.js';
import type { ResourceServer } from '../resource-server.entity.js';
import type { OrganizationEntry } from './organization-entry.js';
import type { AgentEntry, ClientEntry, ResourceServerEntry } from './registry-document.js';

/** A field that is `undefined` keeps the value it has in the database; a new row cannot do without. */
type Row<Entity> = { [Field in keyof Entity]?: Entity[Field] | undefined };

/** What a new organization has where its entry is silent: it admits no public client. */
export const NEW_ORGANIZATION = { publicClients: [] } as const;

export function organizationRow({
  id,
  name,
  license,
  grants,
  public_clients: publicClients,
}: OrganizationEntry): Row<Organization> {
  return { id, name, chatBetweenGroups: license.chat_between_groups, grants, publicClients };
}

/** A new row with the defaults of the columns that its entry leaves out. */
export function withDefaults(row: ObjectLiteral, defaults: ObjectLiteral = {}): ObjectLiteral {
  const missing = Object.entries(defaults).filter(([column]) => row[column] === undefined);
  return { ...row, ...Object.fromEntries(missing) };
}

export function clientRow(entry: ClientEntry): Row<ClientApplication> {
  return {
    clientId: entry.client_id,
    name: entry.name,
    clientType: entry.client_type,
    organizationId: entry.organization_id ?? null,
    ...(entry.client_secret !== undefined && { secretHash: sha256(entry.client_secret), ...NO_PREVIOUS_SECRETS }),
    redirectUris: entry.redirect_uris,
    redirectUriMatch: entry.redirect_uri_match,
    origins: entry.origins,
    grantTypes: entry.grant_types ?? null,
    scopes: entry.scopes,
    grants: entry.grants,
  };
}

export function resourceServerRow({ id, secret, audiences }: ResourceServerEntry): Row<ResourceServer> {
  return { id, secretHash: secret === undefined ? undefined : sha256(secret), audiences };
}

/** An agent's columns; the password's hash takes long to make, and is made beforehand. */
export function agentRow(id: string, entry: AgentEntry, passwordHash: string | undefined): Row<Agent> {
  const { email, name, organization_id: organizationId, scopes } = entry;
  return { id, email: email.toLowerCase(), name, passwordHash, organizationId, scopes };
}

/** Agents keep their id, and the hash of a password that has not changed. */
export async function agentRows(entries: AgentEntry[], existing: Agent[]): Promise<Row<Agent>[]> {
  const byEmail = new Map(existing.map((agent) => [agent.email, agent]));
  return Promise.all(
    entries.map(async ({ email, name, password, organization_id, scopes }) => {
      const current = byEmail.get(email.toLowerCase());
      return {
        id: current?.id ?? randomUUID(),
        email: email.toLowerCase(),
        name,
        passwordHash: await hashOf(password, current),
        organizationId: organization_id,
        scopes,
      };
    }),
  );
}

async function hashOf(password: string | undefined, current: Agent | undefined): Promise<string | undefined> {
  if (password === undefined) return undefined;
  const unchanged = current !== undefined && (await isPasswordOf(current.passwordHash, password));
  return unchanged ? current.passwordHash : hashPassword(password);
}
