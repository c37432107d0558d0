import type { Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import type { ObjectLiteral } from 'typeorm';
import { declaredProperties, isValid, isWellFormed, WELL_FORMED_RULE } from '../../platform/validation/validation.js';
import { violationsOf } from '../../platform/validation/violations.js';
import { comparableEmail } from '../../registry/agent-email.js';
import { AGENTS } from '../../registry/entries/agent.entry.js';
import { type EntryKind, fileKeyOf } from '../../registry/entries/entry-kind.js';
import { ORGANIZATIONS } from '../../registry/entries/organization.entry.js';

/** An entry in the form of the registry file. Its fields are unknown until it is validated. */
export type Entry = Record<string, unknown>;

/** The entries of a registry file or of one request of the admin API, with the violations of their classes. */
export class ListedEntries {
  readonly violations: string[] = [];
  private readonly lists = new Map<EntryKind, ListedEntry[]>();

  of(kind: EntryKind): ListedEntry[] {
    return this.lists.get(kind) ?? [];
  }

  /** Leaves out some organizations, and the entries that belong to them. */
  without(organizationIds: ReadonlySet<unknown>): ListedEntries {
    const remaining = new ListedEntries();
    remaining.violations.push(...this.violations);
    for (const [kind, list] of this.lists) {
      const idOf = ({ entry }: ListedEntry) => (kind === ORGANIZATIONS ? entry.id : entry.organization_id);
      remaining.lists.set(
        kind,
        list.filter((listed) => !organizationIds.has(idOf(listed))),
      );
    }
    return remaining;
  }

  /** @param path in messages: `clients[0]`, or an empty string for the entry of a request */
  add(kind: EntryKind, path: string, fields: unknown): Entry {
    const [instance, violations] = validated(kind.entry, fields, path);
    const entry: Entry = { ...instance };
    this.violations.push(...violations);
    const list = this.of(kind);
    list.push({ path, entry });
    this.lists.set(kind, list);
    return entry;
  }
}

interface ListedEntry {
  path: string;
  entry: Entry;
}

export function isMapping(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isSameValue(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

export function fieldPath(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}

export function validated<Value extends object>(type: Type<Value>, value: unknown, path = ''): [Value, string[]] {
  const instance = plainToInstance(type, value, { exposeDefaultValues: true });
  const fields = declaredProperties(type);
  // class-validator takes a third of the time of a large file
  const isSurelyValid = Object.keys(instance).every((field) => fields.includes(field)) && isValid(type, instance);
  const violations = isSurelyValid
    ? []
    : violationsOf(validateSync(instance, { whitelist: true, forbidNonWhitelisted: true }), path);
  const malformed = fields.filter((field) => !isWellFormed(Reflect.get(instance, field)));
  return [instance, [...violations, ...malformed.map((field) => `${fieldPath(path, field)}: ${WELL_FORMED_RULE}`)]];
}

/** The key by which the registry file identifies an entry; `undefined` if it is no string. */
export function keyInFile(kind: EntryKind, entry: Entry): string | undefined {
  const key = entry[fileKeyOf(kind).field];
  if (typeof key !== 'string') return undefined;
  return kind === AGENTS ? comparableEmail(key) : key;
}

/** The columns of the secret of an entry; none if the entry has no secret. */
export async function secretColumns({ secret }: EntryKind, entry: Entry, stored?: ObjectLiteral | null) {
  const text = secret && entry[secret.field];
  return typeof text === 'string' && secret ? secret.columnsOf(text, stored ?? undefined) : {};
}
