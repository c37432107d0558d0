import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { UUID } from '../../platform/uuid.js';
import { faultsOf } from '../../platform/validation-faults.js';
import type { GrantCatalogue } from '../grant-catalogue.js';
import type { RegistryDocument } from './registry-document.js';
import { shortSecretFaults } from './short-secrets.js';

const UNKNOWN = 'not a grant of this service; take it out, or import the module of the grant';

/** What the database holds already: ids, and the addresses of agents. */
export interface Registered {
  organizations: Set<string>;
  resourceServers: Set<string>;
  agents: Set<string>;
  /** SHA-256 of stored secrets by id, where an unchanged secret may be short. */
  secretHashes?: { clients: Map<string, string | null>; resourceServers: Map<string, string | null> };
}

/** An entry of a list with its path. Its form may be faulty, which is told elsewhere. */
type Entry = [path: string, entry: Record<string, unknown>];

/** What the entries of a document must be to each other, and to what is registered already. */
export function contradictionsOf(
  document: RegistryDocument,
  catalogue: GrantCatalogue,
  registered: Registered,
): string[] {
  const organizations = entriesOf(document, 'organizations');
  const clients = entriesOf(document, 'clients');
  const servers = entriesOf(document, 'resource_servers');
  const agents = entriesOf(document, 'agents').map(
    ([path, entry]): Entry => [path, { ...entry, email: emailOf(entry) }],
  );
  const known = new Set([...registered.organizations, ...organizations.map(([, { id }]) => id)]);
  return [
    ...duplicates(organizations, 'id'),
    ...duplicates(clients, 'client_id'),
    ...duplicates(servers, 'id'),
    ...duplicates(agents, 'email'),
    ...[...organizations, ...clients].flatMap(([path, { grants }]) => settingsFaults(path, grants, catalogue)),
    ...clients.flatMap(([path, { grant_types }]) => unknownGrants(path, grant_types, catalogue)),
    ...[...clients, ...agents]
      .filter(([, { organization_id: id }]) => typeof id === 'string' && UUID.test(id) && !known.has(id))
      .map(([path]) => `${path}.organization_id: not a registered organization`),
    ...shortSecretFaults({
      entries: clients,
      idField: 'client_id',
      secretField: 'client_secret',
      storedHashes: registered.secretHashes?.clients,
    }),
    ...shortSecretFaults({
      entries: servers,
      idField: 'id',
      secretField: 'secret',
      storedHashes: registered.secretHashes?.resourceServers,
    }),
    ...servers
      .filter(([, { id, secret }]) => secret === undefined && !registered.resourceServers.has(String(id)))
      .map(([path]) => `${path}.secret: a new resource server needs one`),
    ...agents
      .filter(([, { email, password }]) => password === undefined && !registered.agents.has(String(email)))
      .map(([path]) => `${path}.password: a new agent needs one`),
  ];
}

function entriesOf(document: RegistryDocument, list: Exclude<keyof RegistryDocument, 'revision'>): Entry[] {
  const entries: unknown = document[list];
  return (Array.isArray(entries) ? entries : [])
    .map((entry, index): Entry => [`${list}[${index}]`, entry])
    .filter(([, entry]) => typeof entry === 'object' && entry !== null);
}

function emailOf({ email }: Record<string, unknown>): unknown {
  return typeof email === 'string' ? email.toLowerCase() : undefined;
}

function duplicates(entries: Entry[], field: string): string[] {
  const ids = entries.map(([, entry]) => entry[field]);
  return entries
    .filter(([, { [field]: id }], index) => typeof id === 'string' && ids.indexOf(id) < index)
    .map(([path]) => `${path}.${field}: given more than once`);
}

function unknownGrants(path: string, names: unknown, catalogue: GrantCatalogue): string[] {
  return (Array.isArray(names) ? names : []).flatMap((name, index) =>
    typeof name !== 'string' || catalogue.has(name) ? [] : [`${path}.grant_types[${index}]: ${UNKNOWN}`],
  );
}

function settingsFaults(above: string, grants: unknown, catalogue: GrantCatalogue): string[] {
  if (typeof grants !== 'object' || grants === null || Array.isArray(grants)) return [];
  return Object.entries(grants).flatMap(([name, value]) => {
    const path = `${above}.grants.${name}`;
    if (!catalogue.has(name)) return [`${path}: ${UNKNOWN}`];
    const settings = catalogue.settings(name);
    if (!settings)
      return [`${path}: this grant has no settings; take it out, or declare \`settings\` in its decorator`];
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path}: must be a mapping`];
    return faultsOf(
      validateSync(plainToInstance(settings, value), { whitelist: true, forbidNonWhitelisted: true }),
      path,
    );
  });
}
