import { setImmediate as nextTick } from 'node:timers/promises';
import type { GrantSettingsClasses, SettingsOwner } from '../grant-settings-classes.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { type Entry, fieldPath, fileKeyOf, type PathAndEntry } from './entry.js';
import { grantSettingsViolations, grantTypesViolations } from './grant-checks.js';

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

/** The violations of each entry alone, in portions. */
async function inPortions(
  entries: PathAndEntry[],
  violationsOf: (path: string, entry: Entry) => string[],
): Promise<string[]> {
  const violations: string[] = [];
  for (const [index, [path, entry]] of entries.entries()) {
    for (const violation of violationsOf(path, entry)) violations.push(violation);
    if (index % ENTRIES_PER_PORTION === ENTRIES_PER_PORTION - 1) await nextTick();
  }
  return violations;
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

async function grantSettings(resource: RegistryResource, { entriesOf, settingsClasses }: CheckedEntries) {
  const { grantSettings: field, auditKind } = resource;
  if (field === undefined) return [];
  const owner = auditKind as SettingsOwner;
  return inPortions(entriesOf(resource), (path, entry) =>
    grantSettingsViolations(fieldPath(path, field), entry[field], owner, settingsClasses),
  );
}

async function grantTypes(resource: RegistryResource, { entriesOf, settingsClasses }: CheckedEntries) {
  const { grantTypes: field } = resource;
  if (field === undefined) return [];
  return inPortions(entriesOf(resource), (path, entry) =>
    grantTypesViolations(fieldPath(path, field), entry[field], settingsClasses),
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
