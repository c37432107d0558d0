import { resolve } from 'node:path';
import { rule } from '../validation.js';

function isDatabaseUrl(text: string): boolean {
  if (/^sqlite:.+$/.test(text)) return text !== 'sqlite::memory:'; // each connection would have its own database
  if (!/^(mysql|mariadb):\/\/[^/]+\/[^/?]+(\?.*)?$/.test(text) || !URL.canParse(text)) return false;
  const { username, password, pathname, searchParams } = new URL(text);
  // the operator would believe that an unknown option, such as sslmode, has an effect
  const isKnown = ([name, value]: [string, string]) =>
    name === 'ssl' ? /^(true|false)$/.test(value) : name === 'ssl_ca';
  if (![...searchParams].every(isKnown)) return false;
  try {
    for (const part of [username, password, pathname]) decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

/** A valid database URL without its credentials and options, for messages. The path of SQLite is absolute. */
export function withoutCredentials(databaseUrl: string): string {
  if (databaseUrl.startsWith('sqlite:')) return `sqlite:${resolve(databaseUrl.slice('sqlite:'.length))}`;
  const { protocol, host, pathname } = new URL(databaseUrl);
  return `${protocol}//${host}${pathname}`;
}

export const IsDatabaseUrl = () =>
  rule(
    'isDatabaseUrl',
    isDatabaseUrl,
    'must be sqlite:PATH, mysql://user:password@host:port/database or mariadb://…, with special characters percent-encoded and no options but ssl and ssl_ca',
  );
