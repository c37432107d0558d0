import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { rule } from '../validation.js';
import { isPercentEncoded } from './variable-rules.js';

function isDatabaseUrl(text: string): boolean {
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

export const IsDatabaseUrl = () =>
  rule(
    'isDatabaseUrl',
    isDatabaseUrl,
    'must be sqlite:PATH, mysql://user:password@host:port/database or mariadb://…, with special characters percent-encoded and no options but ssl and ssl_ca',
  );
