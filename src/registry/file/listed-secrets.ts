import type { ObjectLiteral } from 'typeorm';
import { slowHash } from '../agent-password.js';
import { type EntriesOf, type Entry, secretColumns } from '../entry.js';
import type { Columns } from '../resources/registry-resource.js';
import { PASSWORD, type RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';

export type FindRow = (resource: RegistryResource, entry: Entry) => ObjectLiteral | undefined;

/** A constant salt is enough, because the hashed text contains the salts of the stored hashes. */
const SALT = Buffer.from('customer-authorization registry');

/**
 * One hash of all passwords of a file together with their stored hashes. If it is the stored one, all passwords are
 * unchanged, and 500 passwords need one slow hash and not 500. It is as slow as the hash of a password, because from a
 * fast one the reader of a copy of the database could guess passwords. Empty without passwords.
 */
export async function passwordsHash(entriesOf: EntriesOf, findRow: FindRow): Promise<string> {
  const passwords = REGISTRY_RESOURCES.flatMap((resource) => {
    const { secret, fileKey } = resource;
    if (secret?.kind !== PASSWORD) return [];
    return entriesOf(resource).flatMap(([, entry]) => {
      const password = entry[secret.field];
      if (typeof password !== 'string') return [];
      return [JSON.stringify([entry[fileKey.field], password, findRow(resource, entry)?.[secret.column]])];
    });
  });
  return passwords.length === 0 ? '' : slowHash(JSON.stringify(passwords.sort()), SALT);
}

/** The columns of the listed secrets. Each secret is compared with a stored hash and hashed once, which is slow. */
export class ListedSecrets {
  private readonly known = new Map<Entry, { storedHash: unknown; columns: Columns<ObjectLiteral> }>();

  async columnsOf(
    resource: RegistryResource,
    entry: Entry,
    row: ObjectLiteral | undefined,
    isUnchanged: boolean,
  ): Promise<Columns<ObjectLiteral>> {
    const storedHash: unknown = resource.secret && row?.[resource.secret.column];
    const known = this.known.get(entry);
    if (known && known.storedHash === storedHash) return known.columns;
    const columns = await secretColumns(resource, entry, row, isUnchanged && resource.secret?.kind === PASSWORD);
    this.known.set(entry, { storedHash, columns });
    return columns;
  }
}
