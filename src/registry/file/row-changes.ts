import { randomUUID } from 'node:crypto';
import type { ObjectLiteral } from 'typeorm';
import { withPauses } from '../../platform/with-pauses.js';
import type { EntryChange } from '../registry-transactions.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import type { StoredEntries } from '../stored-entries.js';
import type { ListedRows } from './listed-rows.js';

/** One entry of a registry file, and the result of applying it. */
export interface AppliedEntry {
  /** The kind of entry in messages for the operator: `resource server`. */
  kind: string;
  /** The key of the registry file. */
  id: string;
  outcome: 'created' | 'changed' | 'unchanged';
}

/**
 * Compares the rows of a file with the stored rows. A merged file owns no entries and releases none (protocol §8.10).
 *
 * @returns the entries of the file, and the changes that applying it makes
 */
export async function compareRows(listed: ListedRows[], stored: StoredEntries, merge: boolean) {
  const entries: AppliedEntry[] = [];
  const changes: EntryChange[] = [];
  for (const { resource, rows } of listed) {
    const { noun, key, fileKey } = resource;
    const kept = new Set<string>();
    for await (const row of withPauses(rows)) {
      const id = String(row[fileKey.column]);
      kept.add(id);
      const change = changeOf(resource, { ...row, ownedByFile: !merge }, stored.rowWithKey(resource, id));
      entries.push({ kind: noun, id, outcome: change?.change ?? 'unchanged' });
      if (change) changes.push(change);
    }
    const released = merge ? [] : stored.ownedByFile(resource).filter((row) => !kept.has(row[fileKey.column]));
    for (const row of released) changes.push({ resource, key: row[key.column], change: 'released' });
  }
  return { entries, changes };
}

/** The change that a row of a file causes; `undefined` if the stored row is the same. */
function changeOf(resource: RegistryResource, listed: ObjectLiteral, current: ObjectLiteral | undefined) {
  const { column, isGenerated } = resource.key;
  if (!current) {
    // the generated key is chosen only here, because another process may have created the row since the file was read
    const columns: ObjectLiteral = { ...(isGenerated && { [column]: randomUUID() }), ...listed };
    return { resource, key: String(columns[column]), change: 'created', columns } as const;
  }
  // only the columns that differ, because another transaction may change the others meanwhile
  const differing = Object.entries(listed).filter(
    ([name, value]) => value !== undefined && !isSame(value, current[name]),
  );
  if (differing.length === 0) return undefined;
  const fields = differing.map(([name]) => name);
  const endsTokens = Object.values(resource.tokensEndWith ?? {}).some((name) => fields.includes(String(name)));
  const columns = Object.fromEntries(differing);
  return { resource, key: String(current[column]), change: 'changed', columns, fields, endsTokens } as const;
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
