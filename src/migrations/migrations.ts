import type { MigrationInterface } from 'typeorm';
import { Schema1796000000000 } from './1796000000000-schema.js';

/** A migration of TypeORM, for `Extension.migrations`. */
export type MigrationClass = new () => MigrationInterface;

/**
 * The service's migrations, oldest first. Processes of two releases share the schema during an upgrade, so a release
 * only adds columns and tables, and a later release removes the unused ones.
 */
export const migrations: MigrationClass[] = [
  // 1.0
  Schema1796000000000,
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
