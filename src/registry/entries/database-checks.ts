import type { EntityManager, ObjectLiteral } from 'typeorm';
import { OAuthError } from '../../oauth/oauth-error.js';
import type { GrantSettingsClasses } from '../grant-settings-classes.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { type Entry, fileKeyOf } from './entry.js';
import { entryViolations } from './entry-checks.js';

/**
 * Rejects a row that the admin API may not change.
 *
 * @throws OAuthError `not_found`, `conflict` if the file owns the row
 */
export function editableRow<Row extends ObjectLiteral>(row: Row | null, column: string, key: string): Row {
  // MySQL ignores spaces at the end of a key, so the row may have another key
  if (!row || row[column] !== key) throw OAuthError.notFound();
  if (row.ownedByFile) throw OAuthError.conflict('the entry is in the registry file and can only be changed there');
  return row;
}

/**
 * Checks an entry against the entries of the database by the rules of the registry file.
 *
 * @param isChange whether the entry already has a row
 * @throws OAuthError `invalid_request`
 */
export async function assertConsistent(
  manager: EntityManager,
  resource: RegistryResource,
  entry: Entry,
  settingsClasses: GrantSettingsClasses,
  isChange: boolean,
): Promise<void> {
  const stored: { resource: RegistryResource; key: string }[] = [];
  for (const { field, resource: target } of resource.references) {
    const key = entry[field];
    if (typeof key === 'string' && (await isStored(manager, target, key))) stored.push({ resource: target, key });
  }
  const ownKey = fileKeyOf(resource, entry) ?? '';
  if (isChange || (await isStored(manager, resource, ownKey))) stored.push({ resource, key: ownKey });
  const [violation] = await entryViolations({
    entriesOf: (other) => (other === resource ? [['', entry]] : []),
    settingsClasses,
    isStored: (other, key) => stored.some((each) => each.resource === other && each.key === key),
    invalidPaths: new Set(),
  });
  if (violation !== undefined) throw OAuthError.invalidRequest(violation);
}

/** @throws OAuthError `conflict` if another entry has the same key of the registry file */
export async function assertFileKeyIsFree(
  manager: EntityManager,
  resource: RegistryResource,
  entry: Entry,
  key: string,
): Promise<void> {
  const { fileKey, key: apiKey, entity, noun } = resource;
  if (fileKey.column === apiKey.column) return;
  const other = await manager.findOneBy(entity, { [fileKey.column]: fileKeyOf(resource, entry) });
  if (other && other[apiKey.column] !== key) throw OAuthError.conflict(`${fileKey.field}: belongs to another ${noun}`);
}

/** @throws OAuthError `conflict` if other entries refer to the entry */
export async function assertNotReferenced(
  manager: EntityManager,
  resource: RegistryResource,
  key: string,
): Promise<void> {
  const referring = REGISTRY_RESOURCES.flatMap(({ list, entity, references }) =>
    references.filter(({ resource: target }) => target === resource).map(({ column }) => ({ list, entity, column })),
  );
  for (const { entity, column } of referring) {
    if (!(await manager.existsBy(entity, { [column]: key }))) continue;
    const lists = [...new Set(referring.map(({ list }) => list.replaceAll('_', ' ')))];
    throw OAuthError.conflict(`${lists.join(' or ')} still belong to this ${resource.noun}`);
  }
}

async function isStored(manager: EntityManager, resource: RegistryResource, key: string): Promise<boolean> {
  const { entity, fileKey } = resource;
  const row = await manager.findOneBy(entity, { [fileKey.column]: key });
  return row?.[fileKey.column] === key;
}
