import { existsSync } from 'node:fs';
import type { Configuration } from '../platform/configuration/configuration.js';
import { withoutCredentials } from '../platform/configuration/database-url.js';

/**
 * Without the DATA_DIR or DATABASE_URL of the service, a command would create a new database, and report on it.
 *
 * @throws Error if the file of the embedded database does not exist
 */
export function assertDatabaseExists({ embedded, DATABASE_URL }: Configuration): void {
  const path = DATABASE_URL.slice('sqlite:'.length);
  if (!embedded || existsSync(path)) return;
  const database = withoutCredentials(DATABASE_URL);
  throw new Error(
    `the database ${database} does not exist; set DATABASE_URL or DATA_DIR as the service does, or create it: migrate`,
  );
}
