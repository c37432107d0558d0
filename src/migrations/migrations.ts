import type { MigrationInterface } from 'typeorm';
import { House1795100000000 } from './1795100000000-house.js';
import { AgentsTokens1795110000000 } from './1795110000000-agents-tokens.js';
import { ClientSecrets1795220000000 } from './1795220000000-client-secrets.js';
import { OrganizationUsers1795250000000 } from './1795250000000-organization-users.js';
import { TokenLineage1795310000000 } from './1795310000000-token-lineage.js';
import { ConsentOrganizations1795311000000 } from './1795311000000-consent-organizations.js';
import { TenantsAndSecrets1795312000000 } from './1795312000000-tenants-and-secrets.js';

export type MigrationClass = new () => MigrationInterface;

/** Every step of the schema, oldest first. Old and new processes run together during an update: expand, then contract. */
export const migrations: MigrationClass[] = [
  House1795100000000,
  AgentsTokens1795110000000,
  ClientSecrets1795220000000,
  OrganizationUsers1795250000000,
  TokenLineage1795310000000,
  ConsentOrganizations1795311000000,
  TenantsAndSecrets1795312000000,
];

/**
 * The service's migrations and an extension's, which share one table of what has run.
 *
 * @throws Error when a name is there twice, or has no time to be put in order by
 */
export function migrationsWith(theirs: MigrationClass[]): MigrationClass[] {
  const all = [...migrations, ...theirs];
  const names = new Set<string>();
  for (const name of all.map(migrationName)) {
    if (names.has(name))
      throw new Error(`two migrations have the name ${name}; rename yours: what has run is known by it`);
    if (!/\D\d{13}$/.test(name)) {
      const rule = `must end in the time of its making: milliseconds, 13 digits, as in ${name}1795300000000`;
      throw new Error(`the name of the migration ${name} ${rule}`);
    }
    names.add(name);
  }
  return all;
}

/** As TypeORM has it. */
export function migrationName(migration: MigrationClass): string {
  return new migration().name ?? migration.name;
}
