import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAuthority, isPercentEncoded } from '../validation/url-rules.js';
import { rule } from '../validation/validation.js';

/** How long the file of a database may be empty while another process creates the database. */
const CREATION_MS = 1_000;

export function isDatabaseUrl(text: string): boolean {
  if (text.startsWith('sqlite:')) return isPath(text.slice('sqlite:'.length));
  const [, authority, database, options = ''] = SERVER_URL.exec(text) ?? [];
  if (authority === undefined || database === undefined || !URL.canParse(text)) return false;
  const hasUser = !/^[:@]/.test(authority);
  return hasUser && isAuthority(authority) && isPercentEncoded(database) && areOptions(new URLSearchParams(options));
}

const SERVER_URL = /^(?:mysql|mariadb):\/\/([^/]+)\/([^\s/?#@\\]+)(?:\?([^\s#]*))?$/;

/**
 * Other programs read a host in `//host/path` and options after `?`. The driver reads another database than a file in
 * `http://…`, and with `:memory:` each connection would have a database of its own.
 */
function isPath(text: string): boolean {
  return /^(?!\/\/|\w*:)[^?#\0\r\n]+$/.test(text);
}

/** The operator would believe that an unknown option, such as sslmode, has an effect. */
function areOptions(options: URLSearchParams): boolean {
  const isKnown = ([name, value]: [string, string]) =>
    name === 'ssl' ? /^(true|false)$/.test(value) : name === 'ssl_ca' && value !== '';
  const isContradiction = options.get('ssl') === 'false' && options.has('ssl_ca');
  return [...options].every(isKnown) && new Set(options.keys()).size === options.size && !isContradiction;
}

/** Whether a file has a certificate. Instead of those of an empty file, Node would trust all public authorities. */
export function hasCertificate(path: string): boolean {
  try {
    return new X509Certificate(readFileSync(path)).raw.length > 0;
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
