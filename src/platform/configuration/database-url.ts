import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { rule } from '../validation.js';
import { isPercentEncoded } from './variable-rules.js';

/** How long the file of a database may be empty while another process creates the database. */
const CREATION_MS = 1_000;

export function isDatabaseUrl(text: string): boolean {
  if (/^sqlite:.+$/.test(text)) return text !== 'sqlite::memory:'; // each connection would have its own database
  if (!/^(mysql|mariadb):\/\/[^/]+\/[^/?]+(\?.*)?$/.test(text) || !URL.canParse(text)) return false;
  const { username, password, pathname, searchParams } = new URL(text);
  // the operator would believe that an unknown option, such as sslmode, has an effect
  const isKnown = ([name, value]: [string, string]) =>
    name === 'ssl' ? /^(true|false)$/.test(value) : name === 'ssl_ca';
  return [...searchParams].every(isKnown) && [username, password, pathname].every(isPercentEncoded);
}

/** A valid database URL without its credentials and options, for messages. The path of SQLite is absolute. */
export function withoutCredentials(databaseUrl: string): string {
  if (databaseUrl.startsWith('sqlite:')) return `sqlite:${resolve(databaseUrl.slice('sqlite:'.length))}`;
  const { protocol, host, pathname } = new URL(databaseUrl);
  return `${protocol}//${host}${pathname}`;
}

/** @throws Error if the embedded database does not exist: with another DATA_DIR, a command would create one */
export function assertDatabaseExists({ DATABASE_URL }: { DATABASE_URL: string }): void {
  if (!DATABASE_URL.startsWith('sqlite:') || existsSync(DATABASE_URL.slice('sqlite:'.length))) return;
  const database = withoutCredentials(DATABASE_URL);
  throw new Error(
    `the database ${database} does not exist; set DATABASE_URL or DATA_DIR as the service does, or create it: migrate`,
  );
}

/**
 * SQLite takes an empty file for a new database. After a failed restore, all customers would be gone without an error,
 * and ended tokens would be valid again.
 *
 * @throws Error if the file of the embedded database is empty
 */
export async function assertDatabaseHasContent({ DATABASE_URL }: { DATABASE_URL: string }): Promise<void> {
  if (!isEmptyFile(DATABASE_URL)) return;
  await sleep(CREATION_MS);
  if (!isEmptyFile(DATABASE_URL)) return;
  const database = withoutCredentials(DATABASE_URL);
  throw new Error(`the database ${database} is an empty file; restore a backup, or delete the file for a new database`);
}

function isEmptyFile(databaseUrl: string): boolean {
  if (!databaseUrl.startsWith('sqlite:')) return false;
  const file = statSync(databaseUrl.slice('sqlite:'.length), { throwIfNoEntry: false });
  return file?.isFile() === true && file.size === 0;
}

/** Whether the start creates an embedded database although its signing keys exist: a database may be lost. */
export function isDatabaseLost(configuration: Record<'DATABASE_URL' | 'DATA_DIR', string> & KeyFileSetting): boolean {
  const { DATABASE_URL, DATA_DIR, SIGNING_KEYS_FILE = join(DATA_DIR, 'signing-keys.json') } = configuration;
  const isMissing = DATABASE_URL.startsWith('sqlite:') && !existsSync(DATABASE_URL.slice('sqlite:'.length));
  return isMissing && existsSync(SIGNING_KEYS_FILE);
}

interface KeyFileSetting {
  SIGNING_KEYS_FILE?: string | undefined;
}

export const IsDatabaseUrl = () =>
  rule(
    'isDatabaseUrl',
    isDatabaseUrl,
    'must be sqlite:PATH, mysql://user:password@host:port/database or mariadb://…, with special characters percent-encoded and no options but ssl and ssl_ca',
  );
