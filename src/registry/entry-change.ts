import { randomUUID } from 'node:crypto';
import type { ObjectLiteral } from 'typeorm';
import { isSameValue } from './entry.js';
import type { EntryChange } from './registry-transactions.js';
import type { RegistryResource } from './resources/registry-resource.js';

/** The change that gives a row these columns; `undefined` if the row has them. A column that is `undefined` stays. */
export function changeOf(
  resource: RegistryResource,
  listed: ObjectLiteral,
  current: ObjectLiteral | undefined,
): EntryChange | undefined {
  const { column, isGenerated } = resource.key;
  if (!current) {
    const columns: ObjectLiteral = { ...(isGenerated && { [column]: randomUUID() }), ...listed };
    return { resource, key: String(columns[column]), change: 'created', columns };
  }
  const differing = Object.entries(listed).filter(
    ([name, value]) => value !== undefined && !isSameValue(value, current[name]),
  );
  if (differing.length === 0) return undefined;
  const columns: ObjectLiteral = Object.fromEntries(differing);
  const endsTokens = Object.values(resource.tokensEndWith ?? {}).some((name) => String(name) in columns);
  const fields = changedFields(resource, current, columns);
  return { resource, key: String(current[column]), change: 'changed', columns, fields, endsTokens };
}

/** As the audit names them. An entry in the form of the file has no secret. */
function changedFields({ secret, toEntry }: RegistryResource, row: ObjectLiteral, columns: ObjectLiteral): string[] {
  const [before, after]: ObjectLiteral[] = [toEntry(row), toEntry({ ...row, ...columns })];
  const names = [...new Set([...Object.keys(before as object), ...Object.keys(after as object)])];
  const changed = names.filter((name) => !isSameValue(before?.[name], after?.[name]));
  return secret && secret.column in columns ? [...changed, secret.field] : changed;
}
