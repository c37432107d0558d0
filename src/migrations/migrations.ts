import type { MigrationInterface } from 'typeorm';
import { House1795100000000 } from './1795100000000-house.js';
import { AgentsTokens1795110000000 } from './1795110000000-agents-tokens.js';
import { ClientSecrets1795220000000 } from './1795220000000-client-secrets.js';
import { OrganizationUsers1795250000000 } from './1795250000000-organization-users.js';
import { TokenLineage1795310000000 } from './1795310000000-token-lineage.js';
import { ConsentOrganizations1795311000000 } from './1795311000000-consent-organizations.js';
import { TenantsAndSecrets1795312000000 } from './1795312000000-tenants-and-secrets.js';
import { BrowserLinks1795321000000 } from './1795321000000-browser-links.js';
import { IdleDays1795322000000 } from './1795322000000-idle-days.js';
import { ClientTokenLifetimes1795323000000 } from './1795323000000-client-token-lifetimes.js';
import { CustomerRefreshFamilies1795324000000 } from './1795324000000-customer-refresh-families.js';
import { RegistryLists1795331000000 } from './1795331000000-registry-lists.js';
import { RegistryChanges1795341000000 } from './1795341000000-registry-changes.js';
import { BrowsersMadeFrom1795351000000 } from './1795351000000-browsers-made-from.js';
import { LastTokenDays1795361000000 } from './1795361000000-last-token-days.js';
import { RevocationFeed1795400000000 } from './1795400000000-revocation-feed.js';
import { FeedEntries1795410000000 } from './1795410000000-feed-entries.js';

export type MigrationClass = new () => MigrationInterface;

/**
 * The service's migrations, oldest first. Processes of two releases share the schema during an upgrade, so a release
 * only adds columns and tables, and a later release removes the unused ones.
 *
 * Names with old words, such as `House`, are kept, because TypeORM has stored them in the databases of customers.
 */
export const migrations: MigrationClass[] = [
  House1795100000000,
  AgentsTokens1795110000000,
  ClientSecrets1795220000000,
  OrganizationUsers1795250000000,
  TokenLineage1795310000000,
  ConsentOrganizations1795311000000,
  TenantsAndSecrets1795312000000,
  BrowserLinks1795321000000,
  IdleDays1795322000000,
  ClientTokenLifetimes1795323000000,
  CustomerRefreshFamilies1795324000000,
  RegistryLists1795331000000,
  RegistryChanges1795341000000,
  BrowsersMadeFrom1795351000000,
  LastTokenDays1795361000000,
  RevocationFeed1795400000000,
  FeedEntries1795410000000,
];

/**
 * The service's migrations and those of an extension. TypeORM records both in one table by their names.
 *
 * @throws Error if two migrations have the same name, or if a name does not end in a timestamp
 */
export function migrationsWith(extensionMigrations: MigrationClass[]): MigrationClass[] {
  const all = [...migrations, ...extensionMigrations];
  const names = new Set<string>();
  for (const name of all.map(migrationName)) {
    if (names.has(name))
      throw new Error(
        `two migrations have the name ${name}; rename yours, because the database records migrations by name`,
      );
    if (!/\D\d{13}$/.test(name)) {
      const rule = `must end in the time at which it was written: milliseconds, 13 digits, as in ${name}1795300000000`;
      throw new Error(`the name of the migration ${name} ${rule}`);
    }
    names.add(name);
  }
  return all;
}

/** The name under which TypeORM records a migration. */
export function migrationName(migration: MigrationClass): string {
  return new migration().name ?? migration.name;
}
