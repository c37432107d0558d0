import { randomUUID } from 'node:crypto';
import type { ObjectLiteral } from 'typeorm';
import { isSameValue } from '../entry.js';
import type { EntryChange } from '../registry-transactions.js';
import type { RegistryResource } from '../resources/registry-resource.js';

/** The change of a listed entry; `undefined` if its row has these columns. */
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
  const fields = differing.map(([name]) => name);
  const endsTokens = Object.values(resource.tokensEndWith ?? {}).some((name) => fields.includes(String(name)));
  const columns = Object.fromEntries(differing);
  return { resource, key: String(current[column]), change: 'changed', columns, fields, endsTokens };
}
