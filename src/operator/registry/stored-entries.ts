import type { EntityManager, ObjectLiteral } from 'typeorm';
import { AGENTS } from '../../registry/entries/agent.entry.js';
import { CLIENTS } from '../../registry/entries/client.entry.js';
import { type EntryKind, fileKeyOf } from '../../registry/entries/entry-kind.js';
import { ENTRY_KINDS } from '../../registry/entries/entry-kinds.js';
import { ORGANIZATIONS } from '../../registry/entries/organization.entry.js';
import { rowsWithKeys } from '../../registry/row-pages.js';
import { type EntriesOf, type Entry, keyInFile } from './entry.js';

/** The rows of some entries, and of the organizations that the entries belong to. */
export class StoredEntries {
  private constructor(private readonly rows: Map<EntryKind, Map<string, ObjectLiteral>>) {}

  static async read(manager: EntityManager, entriesOf: EntriesOf): Promise<StoredEntries> {
    const rows = new Map<EntryKind, Map<string, ObjectLiteral>>();
    for (const kind of ENTRY_KINDS) {
      const { column } = fileKeyOf(kind);
      const found = new Map<string, ObjectLiteral>();
      rows.set(kind, found);
      for await (const page of rowsWithKeys(manager, kind.entity, column, keysOf(kind, entriesOf)))
        for (const row of page) found.set(row[column], row);
    }
    return new StoredEntries(rows);
  }

  rowOf(kind: EntryKind, entry: Entry): ObjectLiteral | undefined {
    return this.rows.get(kind)?.get(keyInFile(kind, entry) ?? '');
  }

  hasOrganization(id: string): boolean {
    return this.rows.get(ORGANIZATIONS)?.has(id) ?? false;
  }
}

function keysOf(kind: EntryKind, entriesOf: EntriesOf): Set<string> {
  const keys: unknown[] = entriesOf(kind).map(([, entry]) => keyInFile(kind, entry));
  if (kind === ORGANIZATIONS)
    keys.push(...[CLIENTS, AGENTS].flatMap(entriesOf).map(([, entry]) => entry.organization_id));
  return new Set(keys.filter((key): key is string => typeof key === 'string' && key !== ''));
}
