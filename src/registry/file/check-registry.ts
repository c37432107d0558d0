import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { faultsOf } from '../../platform/validation-faults.js';
import type { GrantCatalogue } from '../grant-catalogue.js';
import type { GrantSettings } from '../organization.entity.js';
import type { RegistryDocument } from './registry-document.js';

/** What the entries of a document must be to each other, and to what is registered already. */
export function contradictionsOf(
  document: RegistryDocument,
  catalogue: GrantCatalogue,
  isOrganization: (id: string) => boolean,
): string[] {
  const listed = new Set(document.organizations.map(({ id }) => id));
  const known = (id: string | undefined) => id === undefined || listed.has(id) || isOrganization(id);
  return [
    ...duplicates(
      'organizations',
      'id',
      document.organizations.map(({ id }) => id),
    ),
    ...duplicates(
      'clients',
      'client_id',
      document.clients.map(({ client_id }) => client_id),
    ),
    ...duplicates(
      'resource_servers',
      'id',
      document.resource_servers.map(({ id }) => id),
    ),
    ...duplicates(
      'agents',
      'email',
      document.agents.map(({ email }) => email.toLowerCase()),
    ),
    ...document.organizations.flatMap(({ grants }, index) =>
      settingsFaults(`organizations[${index}]`, grants, catalogue),
    ),
    ...document.clients.flatMap(({ grants, grant_types = [], organization_id }, index) => [
      ...settingsFaults(`clients[${index}]`, grants, catalogue),
      ...grant_types
        .filter((name) => !catalogue.has(name))
        .map((_, at) => `clients[${index}].grant_types[${at}]: not a grant of this service`),
      ...(known(organization_id) ? [] : [`clients[${index}].organization_id: not a registered organization`]),
    ]),
    ...document.agents
      .map(({ organization_id }, index) => ({ organization_id, index }))
      .filter(({ organization_id }) => !known(organization_id))
      .map(({ index }) => `agents[${index}].organization_id: not a registered organization`),
  ];
}

function duplicates(list: string, field: string, ids: string[]): string[] {
  return ids.flatMap((id, index) =>
    ids.indexOf(id) < index ? [`${list}[${index}].${field}: given more than once`] : [],
  );
}

function settingsFaults(above: string, grants: GrantSettings, catalogue: GrantCatalogue): string[] {
  return Object.entries(grants).flatMap(([name, value]) => {
    const path = `${above}.grants.${name}`;
    if (!catalogue.has(name)) return [`${path}: not a grant of this service`];
    const settings = catalogue.settings(name);
    if (!settings) return [`${path}: this grant has no settings`];
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path}: must be a mapping`];
    return faultsOf(
      validateSync(plainToInstance(settings, value), { whitelist: true, forbidNonWhitelisted: true }),
      path,
    );
  });
}
