import type { MigrationInterface } from 'typeorm';
import { Registry1796000000000 } from './1796000000000-registry.js';
import { Ended1796000000001 } from './1796000000001-ended.js';
import { Customer1796000000002 } from './1796000000002-customer.js';
import { Session1796000000003 } from './1796000000003-session.js';
import { Agent1796000000004 } from './1796000000004-agent.js';
import { GrantStores1796000000007 } from './1796000000007-grant-stores.js';
import { CustomerEvent1796000000009 } from './1796000000009-customer-event.js';

/** A migration of TypeORM, for `Extension.migrations`. */
export type MigrationClass = new () => MigrationInterface;

/**
 * The service's migrations, oldest first. Processes of two releases share the schema during an upgrade, so a release
 * only adds columns and tables, and a later release removes the unused ones.
 */
export const migrations: MigrationClass[] = [
  Registry1796000000000,
  Ended1796000000001,
  Customer1796000000002,
  Session1796000000003,
  Agent1796000000004,
  GrantStores1796000000007,
  CustomerEvent1796000000009,
];

/** @throws Error if two migrations have the same name, or if a name does not end in a timestamp */
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
export function migrationName(migration: MigrationInterface | MigrationClass): string {
  const instance = typeof migration === 'function' ? new migration() : migration;
  return instance.name ?? instance.constructor.name;
}
