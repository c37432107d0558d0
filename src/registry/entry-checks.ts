import { setImmediate as nextTick } from 'node:timers/promises';
import type { EntityManager } from 'typeorm';
import { OAuthError } from '../oauth/oauth-error.js';
import { type Entry, fieldPath, fileKeyOf, isMapping, type PathAndEntry, validated } from './entry.js';
import type { GrantSettingsClasses, SettingsOwner } from './grant-settings-classes.js';
import type { RegistryResource } from './resources/registry-resource.js';
import { REGISTRY_RESOURCES } from './resources/registry-resources.js';

/** Entries that are checked together, and the values that they are checked against. */
export interface CheckedEntries {
  entriesOf(resource: RegistryResource): PathAndEntry[];
  settingsClasses: GrantSettingsClasses;
  /** Whether the database has an entry with this key of the registry file. */
  isStored(resource: RegistryResource, key: string): boolean;
  /** Paths of fields whose value their class has rejected. */
  invalidPaths: ReadonlySet<string>;
}

type EntryCheck = (resource: RegistryResource, checked: CheckedEntries) => string[] | Promise<string[]>;

/** Entries that are checked at once. The event loop serves requests between two portions. */
const ENTRIES_PER_PORTION = 100;

const UNKNOWN_GRANT = 'not a grant of this service; remove the entry, or import the module of the grant';
const NO_SETTINGS = 'this grant has no settings; remove the entry, or declare `settings` in the decorator of the grant';

/** The checks in the order of the violations in a message. They run after the class of each entry has validated it. */
const CHECKS: EntryCheck[] = [uniqueKeys, grantSettings, grantTypes, references, requiredSecrets];

/** The violations of entries against each other and against the registry of the database. */
export async function entryViolations(checked: CheckedEntries): Promise<string[]> {
  const violations: string[] = [];
  for (const check of CHECKS) {
    for (const resource of REGISTRY_RESOURCES) {
      for (const violation of await check(resource, checked)) violations.push(violation);
    }
  }
  return violations;
}

/**
 * Checks an entry of the admin API against the entries of the database by the rules of the registry file.
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
) {
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

function uniqueKeys(resource: RegistryResource, { entriesOf }: CheckedEntries): string[] {
  const seen = new Set<string>();
  return entriesOf(resource).flatMap(([path, entry]) => {
    const key = fileKeyOf(resource, entry);
    if (key === undefined) return [];
    const isRepeated = seen.has(key);
    seen.add(key);
    return isRepeated ? [`${fieldPath(path, resource.fileKey.field)}: given more than once`] : [];
  });
}

/** The class that a grant declares validates its settings. */
async function grantSettings(resource: RegistryResource, { entriesOf, settingsClasses }: CheckedEntries) {
  const owner = resource.auditKind as SettingsOwner;
  return inPortions(resource.grantSettings, entriesOf(resource), (path, settings) =>
    isMapping(settings)
      ? Object.entries(settings).flatMap(([name, value]) =>
          settingsViolations(`${path}.${name}`, name, value, owner, settingsClasses),
        )
      : [],
  );
}

function settingsViolations(
  path: string,
  name: string,
  value: unknown,
  owner: SettingsOwner,
  classes: GrantSettingsClasses,
): string[] {
  if (!classes.has(name)) return [`${path}: ${UNKNOWN_GRANT}`];
  const settings = classes.settings(name, owner);
  if (!settings) return [`${path}: ${NO_SETTINGS}`];
  return isMapping(value) ? validated(settings, value, path)[1] : [`${path}: must be a mapping`];
}

/** Items that are no strings are left to the class of the entry. */
async function grantTypes(resource: RegistryResource, { entriesOf, settingsClasses }: CheckedEntries) {
  return inPortions(resource.grantTypes, entriesOf(resource), (path, names) =>
    (Array.isArray(names) ? names : []).flatMap((name, index) =>
      typeof name !== 'string' || settingsClasses.has(name) ? [] : [`${path}[${index}]: ${UNKNOWN_GRANT}`],
    ),
  );
}

function references(resource: RegistryResource, checked: CheckedEntries): string[] {
  return resource.references.flatMap(({ field, resource: target }) => {
    const listed = new Set(checked.entriesOf(target).map(([, entry]) => fileKeyOf(target, entry)));
    return checked
      .entriesOf(resource)
      .map(([path, entry]) => ({ path: fieldPath(path, field), key: entry[field] }))
      .filter(({ path, key }) => typeof key === 'string' && !checked.invalidPaths.has(path) && !listed.has(key))
      .filter(({ key }) => !checked.isStored(target, String(key)))
      .map(({ path }) => `${path}: not a registered ${target.noun}`);
  });
}

function requiredSecrets(resource: RegistryResource, { entriesOf, isStored }: CheckedEntries): string[] {
  const { secret, noun } = resource;
  if (!secret?.isRequired) return [];
  return entriesOf(resource)
    .filter(([, entry]) => entry[secret.field] === undefined && !isStored(resource, String(fileKeyOf(resource, entry))))
    .map(([path]) => `${fieldPath(path, secret.field)}: required for a new ${noun}`);
}

/** The violations of one field of each entry, in portions. */
async function inPortions(
  field: string | undefined,
  entries: PathAndEntry[],
  violationsOf: (path: string, value: unknown) => string[],
): Promise<string[]> {
  const violations: string[] = [];
  if (field === undefined) return violations;
  for (const [index, [path, entry]] of entries.entries()) {
    for (const violation of violationsOf(fieldPath(path, field), entry[field])) violations.push(violation);
    if (index % ENTRIES_PER_PORTION === ENTRIES_PER_PORTION - 1) await nextTick();
  }
  return violations;
}
