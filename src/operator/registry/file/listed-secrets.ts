import type { ObjectLiteral } from 'typeorm';
import { slowHash } from '../../../registry/agent-password.js';
import { AGENTS } from '../../../registry/entries/agent.entry.js';
import type { EntryKind } from '../../../registry/entries/entry-kind.js';
import { type Entry, type ListedEntries, secretColumns } from '../entry.js';

/** A constant salt is enough, because the hashed text contains the salts of the stored hashes. */
const SALT = Buffer.from('customer-authorization registry');

/**
 * One hash of all passwords of a file together with their stored hashes. If it is the stored one, all passwords are
 * unchanged, and 500 passwords need one slow hash and not 500. It is as slow as the hash of a password, because from a
 * fast one the reader of a copy of the database could guess passwords. Empty without passwords.
 */
export async function passwordsHash(
  entries: ListedEntries,
  storedHashOf: (agent: Entry) => string | undefined,
): Promise<string> {
  const passwords = entries
    .of(AGENTS)
    .map(({ entry }) => entry)
    .filter(({ password }) => typeof password === 'string')
    .map((agent) => JSON.stringify([agent.email, agent.password, storedHashOf(agent)]));
  return passwords.length === 0 ? '' : slowHash(JSON.stringify(passwords.sort()), SALT);
}

/** The columns of the listed secrets. Each secret is compared with a stored hash and hashed once, which is slow. */
export class ListedSecrets {
  private readonly known = new Map<Entry, { storedHash: unknown; columns: ObjectLiteral }>();

  async columnsOf(kind: EntryKind, entry: Entry, row: ObjectLiteral | undefined): Promise<ObjectLiteral> {
    const storedHash: unknown = kind.secret && row?.[kind.secret.column];
    const known = this.known.get(entry);
    if (known && known.storedHash === storedHash) return known.columns;
    const columns = await secretColumns(kind, entry, row);
    this.known.set(entry, { storedHash, columns });
    return columns;
  }
}
