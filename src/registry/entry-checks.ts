import type { EntityManager } from 'typeorm';
import { OAuthError } from '../oauth/oauth-error.js';
import { UNKNOWN_FIELD } from '../platform/validation-violations.js';
import { type EntriesOf, type Entry, fieldPath, isMapping, type PathAndEntry, validated } from './entry.js';
import type { GrantSettingsClasses, SettingsOwner } from './grant-settings-classes.js';
import { ProofIssuers } from './proof-issuers.js';
import { organizationResource } from './resources/organization.resource.js';
import { fileKeyOf, type RegistryResource } from './resources/registry-resource.js';
import { REGISTRY_RESOURCES } from './resources/registry-resources.js';
import { StoredEntries } from './stored-entries.js';

export interface CheckedEntries {
  entriesOf: EntriesOf;
  settingsClasses: GrantSettingsClasses;
  proofIssuers: ProofIssuers;
  /** Whether the database has an entry with this key of the registry file. */
  isStored(resource: RegistryResource, key: string): boolean;
  /** Paths of fields whose value their class has rejected. */
  invalidPaths: ReadonlySet<string>;
}

/** The path of the first entry with each key of the registry file. */
type FirstPaths = Map<RegistryResource, Map<string | undefined, string>>;

type EntryCheck = (
  resource: RegistryResource,
  entry: PathAndEntry,
  checked: CheckedEntries & { firstPaths: FirstPaths },
) => string[];

const MAX_VALUE_BYTES = 65_535;

const UNKNOWN_GRANT = 'not a grant of this service; remove it, or start the service with the extension that has it';
const NO_SETTINGS = 'this grant has no settings; remove the entry';

const SHARED_PROOFS =
  'another organization accepts the same issuer; each of them needs an audience, and no value may be in both';

export async function entryViolations(checked: CheckedEntries): Promise<string[]> {
  const violations: string[] = [];
  const firstPaths: FirstPaths = new Map();
  for (const resource of REGISTRY_RESOURCES) {
    const paths = checked.entriesOf(resource).map(([path, entry]) => [fileKeyOf(resource, entry), path] as const);
    firstPaths.set(resource, new Map(paths.reverse()));
  }
  for (const check of CHECKS) {
    for (const resource of REGISTRY_RESOURCES) {
      for (const entry of checked.entriesOf(resource))
        violations.push(...check(resource, entry, { ...checked, firstPaths }));
    }
  }
  return violations;
}

/** An entry, and the violations of its class. */
export interface ParsedEntry {
  entry: Entry;
  violations: string[];
}

/** The paths of the fields that violate a rule. */
export function pathsOf(violations: string[]): ReadonlySet<string> {
  return new Set(violations.map((violation) => violation.replace(/: .*$/s, '')));
}

/** Names all violations, one on each line. */
export function invalidEntry(violations: string[]): OAuthError {
  // the caller chooses the name of an unknown field, and texts of callers are not logged
  const reason = violations.some((each) => each.endsWith(UNKNOWN_FIELD)) ? 'an unknown field' : undefined;
  return OAuthError.invalidRequest([...new Set(violations)].join('\n'), reason);
}

/** `isChange`: the entry has a row. @throws OAuthError `invalid_request`, `conflict` if another entry has its key */
export async function assertConsistent(
  manager: EntityManager,
  resource: RegistryResource,
  [key, { entry, violations }]: [key: string, entry: ParsedEntry],
  settingsClasses: GrantSettingsClasses,
  isChange: boolean,
): Promise<void> {
  const entriesOf: EntriesOf = (other) => (other === resource ? [['', entry]] : []);
  const stored = await StoredEntries.read(manager, entriesOf);
  const isOwn = (other: RegistryResource, each: string) => other === resource && each === fileKeyOf(resource, entry);
  const further = await entryViolations({
    entriesOf,
    settingsClasses,
    proofIssuers: await ProofIssuers.read(manager, entriesOf, settingsClasses),
    isStored: (other, each) => (isChange && isOwn(other, each)) || stored.rowWithKey(other, each) !== undefined,
    invalidPaths: pathsOf(violations),
  });
  if (violations.length + further.length > 0) throw invalidEntry([...violations, ...further]);
  const row = stored.rowOf(resource, entry);
  if (row?.[resource.key.column] === key && !isChange) throw alreadyExists(resource);
  if (row && row[resource.key.column] !== key) throw belongsToAnother(resource);
}

export const belongsToAnother = ({ fileKey, noun }: RegistryResource) =>
  OAuthError.conflict(`${fileKey.field}: belongs to another ${noun}`);

export const alreadyExists = ({ key }: RegistryResource) => OAuthError.conflict(`${key.field}: already exists`);

/** @throws OAuthError `conflict` if other entries refer to the entry */
export async function assertNotReferenced(
  manager: EntityManager,
  resource: RegistryResource,
  key: string,
): Promise<void> {
  for (const { entity, column } of referencesTo(resource))
    if (await manager.existsBy(entity, { [column]: key })) throw stillReferenced(resource);
}

export function stillReferenced(resource: RegistryResource): OAuthError {
  const lists = [...new Set(referencesTo(resource).map(({ list }) => list.replaceAll('_', ' ')))];
  return OAuthError.conflict(`${lists.join(' or ')} still belong to this ${resource.noun}`);
}

function referencesTo(resource: RegistryResource) {
  return REGISTRY_RESOURCES.flatMap(({ list, entity, references }) =>
    references.filter(({ resource: target }) => target === resource).map(({ column }) => ({ list, entity, column })),
  );
}

const uniqueKeys: EntryCheck = (resource, [path, entry], { firstPaths }) => {
  const key = fileKeyOf(resource, entry);
  if (key === undefined || firstPaths.get(resource)?.get(key) === path) return [];
  return [`${fieldPath(path, resource.fileKey.field)}: given more than once`];
};

const grantSettings: EntryCheck = (resource, [path, entry], { settingsClasses }) => {
  const { grantSettings: field = '', auditKind } = resource;
  const settings = entry[field];
  if (!isMapping(settings)) return [];
  return Object.entries(settings).flatMap(([name, value]) => {
    const settingsPath = `${fieldPath(path, field)}.${name}`;
    if (!settingsClasses.has(name)) return [`${settingsPath}: ${UNKNOWN_GRANT}`];
    const type = settingsClasses.settings(name, auditKind as SettingsOwner);
    if (!type) return [`${settingsPath}: ${NO_SETTINGS}`];
    return isMapping(value) ? validated(type, value, settingsPath)[1] : [`${settingsPath}: must be a mapping`];
  });
};

const ownProofs: EntryCheck = (resource, [path, entry], { proofIssuers }) => {
  const { grantSettings: field = '' } = resource;
  if (resource !== organizationResource) return [];
  return proofIssuers
    .sharedGrantsOf(entry)
    .map((name) => `${fieldPath(path, field)}.${name}.audience: ${SHARED_PROOFS}`);
};

/** Items that are no strings are left to the class of the entry. */
const grantTypes: EntryCheck = ({ grantTypes: field = '' }, [path, entry], { settingsClasses }) => {
  const names = entry[field];
  return (Array.isArray(names) ? names : []).flatMap((name, index) =>
    typeof name !== 'string' || settingsClasses.has(name)
      ? []
      : [`${fieldPath(path, field)}[${index}]: ${UNKNOWN_GRANT}`],
  );
};

const references: EntryCheck = (resource, [path, entry], checked) => {
  return resource.references.flatMap(({ field, resource: target }) => {
    const [key, referencePath] = [entry[field], fieldPath(path, field)];
    if (typeof key !== 'string' || checked.invalidPaths.has(referencePath)) return [];
    const isKnown = checked.firstPaths.get(target)?.has(key) || checked.isStored(target, key);
    return isKnown ? [] : [`${referencePath}: not a registered ${target.noun}`];
  });
};

const requiredSecrets: EntryCheck = (resource, [path, entry], { isStored }) => {
  const { secret, noun } = resource;
  if (!secret?.isRequired || entry[secret.field] !== undefined) return [];
  if (isStored(resource, String(fileKeyOf(resource, entry)))) return [];
  return [`${fieldPath(path, secret.field)}: required for a new ${noun}`];
};

/** A list or a mapping must fit into a `text` of MySQL, on each database. */
const sizes: EntryCheck = (_resource, [path, entry]) =>
  Object.entries(entry)
    .filter(([, value]) => value instanceof Object && Buffer.byteLength(JSON.stringify(value)) > MAX_VALUE_BYTES)
    .map(([field]) => `${fieldPath(path, field)}: must have at most ${MAX_VALUE_BYTES} bytes as JSON`);

/** The checks in the order of the violations in a message. They run after the class of each entry has validated it. */
const CHECKS: EntryCheck[] = [sizes, uniqueKeys, grantSettings, ownProofs, grantTypes, references, requiredSecrets];
