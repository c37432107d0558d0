import { type EntityManager, type FindOptionsWhere, IsNull, Not, type ObjectLiteral } from 'typeorm';
import { OAuthError } from '../../oauth/oauth-error.js';
import { UNKNOWN_FIELD } from '../../platform/validation/violations.js';
import { Agent } from '../../registry/agent.entity.js';
import { ClientApplication } from '../../registry/client-application.entity.js';
import { AGENTS } from '../../registry/entries/agent.entry.js';
import { CLIENTS } from '../../registry/entries/client.entry.js';
import { type EntryKind, fileKeyOf, nounOf } from '../../registry/entries/entry-kind.js';
import { ENTRY_KINDS } from '../../registry/entries/entry-kinds.js';
import { ORGANIZATIONS } from '../../registry/entries/organization.entry.js';
import type { GrantSettingsClasses } from '../../registry/grant-settings-classes.js';
import { type EntriesOf, type Entry, fieldPath, isMapping, keyInFile, validated } from './entry.js';
import { ProofIssuers } from './proof-issuers.js';
import { StoredEntries } from './stored-entries.js';

export interface CheckedEntries {
  entriesOf: EntriesOf;
  settingsClasses: GrantSettingsClasses;
  proofIssuers: ProofIssuers;
  isStored(kind: EntryKind, entry: Entry): boolean;
  hasOrganization(id: string): boolean;
  /** Violations of the classes of the entries. */
  violations: string[];
}

const MAX_VALUE_BYTES = 65_535;

const UNKNOWN_GRANT = 'not a grant of this service; remove it, or start the service with the extension that has it';
const NO_SETTINGS = 'this grant has no settings; remove the entry';

const SHARED_PROOFS =
  'another organization accepts the same issuer; each of them needs an audience, and no value may be in both';

/** All violations: those of the classes, and those that only other entries show. */
export function entryViolations(checked: CheckedEntries): string[] {
  const { entriesOf, settingsClasses, proofIssuers, violations } = checked;
  const invalidPaths = new Set(violations.map((violation) => violation.replace(/: .*$/s, '')));
  const organizationIds = new Set(entriesOf(ORGANIZATIONS).map(([, { id }]) => id));
  const checkEntry = (kind: EntryKind, path: string, entry: Entry): string[] => {
    const found = sizeViolations(path, entry);
    const { secret } = kind;
    if (kind.name === 'organization' || kind.name === 'client')
      found.push(...settingsViolations(kind.name, path, entry, settingsClasses));
    if (kind === ORGANIZATIONS)
      for (const grant of proofIssuers.sharedGrantsOf(entry))
        found.push(`${fieldPath(path, `grants.${grant}.audience`)}: ${SHARED_PROOFS}`);
    if (kind === CLIENTS) found.push(...grantTypeViolations(path, entry, settingsClasses));
    if (kind === CLIENTS || kind === AGENTS) {
      const [id, idPath] = [entry.organization_id, fieldPath(path, 'organization_id')];
      const isKnown = typeof id !== 'string' || organizationIds.has(id) || checked.hasOrganization(id);
      if (!isKnown && !invalidPaths.has(idPath)) found.push(`${idPath}: not a registered organization`);
    }
    if (secret?.isRequired && entry[secret.field] === undefined && !checked.isStored(kind, entry))
      found.push(`${fieldPath(path, secret.field)}: required for a new ${nounOf(kind)}`);
    return found;
  };
  const further = ENTRY_KINDS.flatMap((kind) => {
    const keys = new Set<string>();
    return entriesOf(kind).flatMap(([path, entry]) => {
      const key = keyInFile(kind, entry);
      const isRepeated = key !== undefined && keys.has(key);
      if (key !== undefined) keys.add(key);
      const repeated = isRepeated ? [`${fieldPath(path, fileKeyOf(kind).field)}: given more than once`] : [];
      return [...repeated, ...checkEntry(kind, path, entry)];
    });
  });
  return [...violations, ...further];
}

/** A list or a mapping must fit into a `text` of MySQL, on each database. */
function sizeViolations(path: string, entry: Entry): string[] {
  return Object.entries(entry)
    .filter(([, value]) => value instanceof Object && Buffer.byteLength(JSON.stringify(value)) > MAX_VALUE_BYTES)
    .map(([field]) => `${fieldPath(path, field)}: must have at most ${MAX_VALUE_BYTES} bytes as JSON`);
}

function settingsViolations(
  owner: 'organization' | 'client',
  path: string,
  { grants }: Entry,
  settingsClasses: GrantSettingsClasses,
): string[] {
  if (!isMapping(grants)) return [];
  return Object.entries(grants).flatMap(([name, value]) => {
    const settingsPath = fieldPath(path, `grants.${name}`);
    if (!settingsClasses.has(name)) return [`${settingsPath}: ${UNKNOWN_GRANT}`];
    const type = settingsClasses.settings(name, owner);
    if (!type) return [`${settingsPath}: ${NO_SETTINGS}`];
    return isMapping(value) ? validated(type, value, settingsPath)[1] : [`${settingsPath}: must be a mapping`];
  });
}

/** Items that are no strings are left to the class of the entry. */
function grantTypeViolations(path: string, { grant_types }: Entry, settingsClasses: GrantSettingsClasses): string[] {
  return (Array.isArray(grant_types) ? grant_types : []).flatMap((name, index) =>
    typeof name !== 'string' || settingsClasses.has(name)
      ? []
      : [`${fieldPath(path, 'grant_types')}[${index}]: ${UNKNOWN_GRANT}`],
  );
}

/** An entry, and the violations of its class. */
export interface ParsedEntry {
  entry: Entry;
  violations: string[];
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
  kind: EntryKind,
  [key, { entry, violations }]: [key: string, entry: ParsedEntry],
  settingsClasses: GrantSettingsClasses,
  isChange: boolean,
): Promise<void> {
  const entriesOf: EntriesOf = (other) => (other === kind ? [['', entry]] : []);
  const stored = await StoredEntries.read(manager, entriesOf);
  const all = entryViolations({
    entriesOf,
    settingsClasses,
    proofIssuers: await ProofIssuers.read(manager, entriesOf, settingsClasses),
    isStored: () => isChange,
    hasOrganization: (id) => stored.hasOrganization(id),
    violations,
  });
  if (all.length > 0) throw invalidEntry(all);
  const row = stored.rowOf(kind, entry);
  if (row?.[kind.key.column] === key && !isChange) throw alreadyExists(kind);
  if (row && row[kind.key.column] !== key) throw belongsToAnother(kind);
  if (isChange) return;
  const { column, field } = kind.key;
  if ((await deletedKeys(manager, kind, { [column]: key })).has(key))
    throw OAuthError.conflict(`${field}: ${key} was deleted, and ${whenFree(kind)}`);
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

export function whenFree(kind: EntryKind): string {
  return kind === ORGANIZATIONS
    ? 'its id cannot be used again'
    : 'its id is free when the purge has deleted its codes and refresh tokens, a day later at the earliest';
}

export const belongsToAnother = (kind: EntryKind) =>
  OAuthError.conflict(`${fileKeyOf(kind).field}: belongs to another ${nounOf(kind)}`);

export const alreadyExists = ({ key }: EntryKind) => OAuthError.conflict(`${key.field}: already exists`);

/** @throws OAuthError `conflict` */
export async function assertUnused(manager: EntityManager, organizationId: string): Promise<void> {
  for (const entity of [ClientApplication, Agent])
    if (await manager.existsBy<ClientApplication | Agent>(entity, { organizationId })) throw organizationInUse();
}

export const organizationInUse = () => OAuthError.conflict('clients or agents still belong to this organization');
