import { randomUUID } from 'node:crypto';
import type { ObjectLiteral } from 'typeorm';
import type { EntryKind } from '../../registry/entries/entry-kind.js';
import { isSameValue } from './entry.js';

export interface EntryChange {
  kind: EntryKind;
  /** The key of the admin API. The key of the file is not used, because an agent's email must not be in the audit. */
  key: string;
  change: 'created' | 'changed' | 'deleted';
  /** All columns of a new row, or those that change. */
  columns?: ObjectLiteral;
  /** The changed fields, as the audit names them. */
  fields?: string[];
}

/** The change that gives a row these columns; `undefined` if the row has them. */
export function changeOf(
  kind: EntryKind,
  listed: ObjectLiteral,
  current: ObjectLiteral | undefined,
): EntryChange | undefined {
  const { column } = kind.key;
  if (!current) {
    const columns: ObjectLiteral = { [column]: randomUUID(), ...listed };
    return { kind, key: String(columns[column]), change: 'created', columns };
  }
  const columns = Object.fromEntries(
    Object.entries(listed).filter(([name, value]) => !isSameValue(value, current[name])),
  );
  if (Object.keys(columns).length === 0) return undefined;
  return {
    kind,
    key: String(current[column]),
    change: 'changed',
    columns,
    fields: changedFields(kind, current, columns),
  };
}

function changedFields(
  { secret, reference, toEntry }: EntryKind,
  row: ObjectLiteral,
  columns: ObjectLiteral,
): string[] {
  const [before, after]: ObjectLiteral[] = [toEntry(row), toEntry({ ...row, ...columns })];
  const changed = Object.keys(before as object).filter((name) => !isSameValue(before?.[name], after?.[name]));
  const others = [secret, reference].flatMap((other) => (other && other.column in columns ? [other.field] : []));
  return [...changed, ...others];
}
