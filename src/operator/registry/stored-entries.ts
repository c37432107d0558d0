import { randomUUID } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';
import { type EntityManager, type FindOptionsWhere, In, IsNull, Not, type ObjectLiteral } from 'typeorm';
import { portionsOf } from '../../platform/database/value-list.js';
import { comparableEmail } from '../../registry/agent-email.js';
import { AGENTS } from '../../registry/entries/agent.entry.js';
import { CLIENTS } from '../../registry/entries/client.entry.js';
import { type EntryKind, fileKeyOf } from '../../registry/entries/entry-kind.js';
import { ENTRY_KINDS } from '../../registry/entries/entry-kinds.js';
import { ORGANIZATIONS } from '../../registry/entries/organization.entry.js';
import { Organization } from '../../registry/organization.entity.js';
import { ROWS_PER_PAGE } from '../../registry/row-pages.js';
import { type Entry, keyInFile, type ListedEntries } from './entry.js';

/** The rows of listed entries, and of the organizations and agents that the entries name. */
export class StoredEntries {
  /** By email. */
  private readonly newAgentIds = new Map<string, string>();

  private constructor(private readonly rows: Map<EntryKind, Map<string, ObjectLiteral>>) {}

  static async read(manager: EntityManager, entries: ListedEntries): Promise<StoredEntries> {
    const rowsByKind = new Map<EntryKind, Map<string, ObjectLiteral>>();
    for (const kind of ENTRY_KINDS) {
      const { column } = fileKeyOf(kind);
      const rowsByKey = new Map<string, ObjectLiteral>();
      rowsByKind.set(kind, rowsByKey);
      for (const keys of portionsOf(keysOf(kind, entries), ROWS_PER_PAGE)) {
        const rows = await manager.findBy(kind.entity, { [column]: In(keys) });
        for (const row of rows) rowsByKey.set(row[column], row);
        await nextTick();
      }
    }
    return new StoredEntries(rowsByKind);
  }

  rowOf(kind: EntryKind, entry: Entry): ObjectLiteral | undefined {
    return this.rows.get(kind)?.get(keyInFile(kind, entry) ?? '');
  }

  agentOf(email: string): ObjectLiteral | undefined {
    return this.rows.get(AGENTS)?.get(comparableEmail(email));
  }

  /** Of an agent that is not stored, the id that it gets if the same file lists it. */
  agentId(email: string): string {
    const key = comparableEmail(email);
    const id = this.agentOf(key)?.id ?? this.newAgentIds.get(key) ?? randomUUID();
    this.newAgentIds.set(key, id);
    return id;
  }

  /** The column with the id of the agent that an entry names. */
  referenceColumns({ reference }: EntryKind, entry: Entry): ObjectLiteral {
    if (!reference) return {};
    const email = entry[reference.field];
    return { [reference.column]: typeof email === 'string' ? this.agentId(email) : null };
  }

  hasOrganization(id: string): boolean {
    return this.rows.get(ORGANIZATIONS)?.has(id) ?? false;
  }
}

function keysOf(kind: EntryKind, entries: ListedEntries): string[] {
  const keys: unknown[] = entries.of(kind).map(({ entry }) => keyInFile(kind, entry));
  if (kind === ORGANIZATIONS)
    for (const owned of [CLIENTS, AGENTS]) keys.push(...entries.of(owned).map(({ entry }) => entry.organization_id));
  if (kind === AGENTS)
    for (const { entry } of entries.of(CLIENTS))
      if (typeof entry.agent === 'string') keys.push(comparableEmail(entry.agent));
  return [...new Set(keys)].filter((key): key is string => typeof key === 'string' && key !== '');
}

/** The keys of deleted entries of which something may be left. */
export async function deletedKeys(
  manager: EntityManager,
  kind: EntryKind,
  where: ObjectLiteral = {},
): Promise<Set<unknown>> {
  if (kind !== ORGANIZATIONS && kind !== CLIENTS) return new Set();
  const { column } = kind.key;
  const select = { [column]: true };
  const deleted: FindOptionsWhere<ObjectLiteral> = { ...where, deletedAt: Not(IsNull()) };
  const rows = await manager.find(kind.entity, { select, where: deleted, withDeleted: true });
  return new Set(rows.map((row) => row[column]));
}

/**
 * The organizations that are being off-boarded. A registry file and an export leave them out, with what belongs to
 * them.
 */
export async function leavingOrganizations(manager: EntityManager): Promise<Set<unknown>> {
  const where = { offboardingAt: Not(IsNull()) };
  const rows = await manager.find(Organization, { select: { id: true }, where, withDeleted: true });
  return new Set(rows.map(({ id }) => id));
}

export function whenFree(kind: EntryKind): string {
  return kind === ORGANIZATIONS
    ? 'its id is free when everything of it is erased, a day later at the earliest'
    : 'its id is free when the purge has deleted its codes and refresh tokens, a day later at the earliest';
}
