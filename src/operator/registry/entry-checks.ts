import { Injectable } from '@nestjs/common';
import type { EntityManager, ObjectLiteral } from 'typeorm';
import { canonicalEmail, comparableEmail } from '../../registry/agent-email.js';
import { AGENTS } from '../../registry/entries/agent.entry.js';
import { CLIENTS } from '../../registry/entries/client.entry.js';
import { type EntryKind, fileKeyOf, nounOf } from '../../registry/entries/entry-kind.js';
import { ENTRY_KINDS } from '../../registry/entries/entry-kinds.js';
import { ORGANIZATIONS } from '../../registry/entries/organization.entry.js';
import { GrantSettingsClasses, type SettingsOwner } from '../../registry/grant-settings-classes.js';
import { type Entry, fieldPath, isMapping, keyInFile, type ListedEntries, validated } from './entry.js';
import { ProofIssuers } from './proof-issuers.js';
import type { StoredEntries } from './stored-entries.js';

/** What the checks know of entries that are not listed. */
interface OtherEntries {
  proofIssuers: ProofIssuers;
  isSecretStored(kind: EntryKind, entry: Entry): boolean;
  hasOrganization(id: string): boolean;
  /** The organization of an agent; `true` if it is supposed to be the right one. */
  organizationOfAgent(email: string): unknown;
}

const MAX_VALUE_BYTES = 65_535;

const UNKNOWN_GRANT = 'not a grant of this service; remove it, or start the service with the extension that has it';
const NO_SETTINGS = 'this grant has no settings; remove the entry';

const NO_AGENT = 'only for a client of type server that belongs to an organization';
const FOREIGN_AGENT = "an agent of another organization than the client's";

const SHARED_PROOFS =
  'another organization accepts the same issuer, or a federated entry does; each needs an audience, and no value may be in both';
const SHARED_ISSUER = 'an organization accepts the same issuer; both need an audience, and no value may be in both';
const SHARED_IDENTITY = 'another entry has the same issuer and subject; both need an audience, and different ones';

/** All violations of entries: those of their classes, and those that only other entries and the grants show. */
@Injectable()
export class EntryChecks {
  constructor(private readonly settingsClasses: GrantSettingsClasses) {}

  async violations(
    manager: EntityManager,
    entries: ListedEntries,
    stored: StoredEntries,
    isSecretStored: OtherEntries['isSecretStored'],
  ): Promise<string[]> {
    const proofIssuers = await ProofIssuers.read(manager, entries, this.settingsClasses);
    return this.violationsOf(entries, {
      proofIssuers,
      isSecretStored,
      hasOrganization: (id) => stored.hasOrganization(id),
      organizationOfAgent: (email) => stored.agentOf(email)?.organizationId,
    });
  }

  /** @param areStored whether to suppose that the database has all entries and organizations, or none */
  violationsWithoutDatabase(entries: ListedEntries, areStored: boolean): string[] {
    const proofIssuers = ProofIssuers.of(entries, this.settingsClasses);
    return this.violationsOf(entries, {
      proofIssuers,
      isSecretStored: () => areStored,
      hasOrganization: () => areStored,
      organizationOfAgent: () => areStored || undefined,
    });
  }

  private violationsOf(entries: ListedEntries, others: OtherEntries): string[] {
    const violations = [...entries.violations];
    const invalidPaths = new Set(violations.map((violation) => violation.replace(/: .*$/s, '')));
    const organizationIds = new Set(entries.of(ORGANIZATIONS).map(({ entry }) => entry.id));
    const agents = new Map(entries.of(AGENTS).map(({ entry }) => [keyInFile(AGENTS, entry), entry.organization_id]));
    const organizationOfAgent = (email: string) =>
      agents.get(comparableEmail(email)) ?? others.organizationOfAgent(email);
    for (const kind of ENTRY_KINDS) {
      const keys = new Set<string>();
      for (const { path, entry } of entries.of(kind)) {
        const key = keyInFile(kind, entry);
        if (key !== undefined && keys.has(key))
          violations.push(`${fieldPath(path, fileKeyOf(kind).field)}: given more than once`);
        if (key !== undefined) keys.add(key);
        violations.push(...sizeViolations(path, entry), ...this.grantViolations(kind, path, entry));
        if (kind === ORGANIZATIONS)
          for (const grant of others.proofIssuers.sharedGrantsOf(entry))
            violations.push(`${fieldPath(path, `grants.${grant}.audience`)}: ${SHARED_PROOFS}`);
        if (others.proofIssuers.isIssuerShared(entry))
          violations.push(`${fieldPath(path, 'federated.issuer')}: ${SHARED_ISSUER}`);
        if (others.proofIssuers.isIdentityShared(kind, entry))
          violations.push(`${fieldPath(path, 'federated.subject')}: ${SHARED_IDENTITY}`);
        const { organization_id: id } = entry;
        const organizationPath = fieldPath(path, 'organization_id');
        const isKnown = typeof id !== 'string' || organizationIds.has(id) || others.hasOrganization(id);
        if (!isKnown && !invalidPaths.has(organizationPath))
          violations.push(`${organizationPath}: not a registered organization`);
        if (kind === CLIENTS) violations.push(...agentViolations(path, entry, organizationOfAgent));
        if (lacksSecret(kind, entry) && !others.isSecretStored(kind, entry))
          violations.push(`${fieldPath(path, String(kind.secret?.field))}: ${requiredSecret(kind)}`);
      }
    }
    return violations;
  }

  private grantViolations(kind: EntryKind, path: string, entry: Entry): string[] {
    if (kind === ORGANIZATIONS) return this.settingsViolations('organization', path, entry);
    if (kind !== CLIENTS) return [];
    return [...this.settingsViolations('client', path, entry), ...this.grantTypeViolations(path, entry)];
  }

  private settingsViolations(owner: SettingsOwner, path: string, { grants }: Entry): string[] {
    if (!isMapping(grants)) return [];
    return Object.entries(grants).flatMap(([name, value]) => {
      const settingsPath = fieldPath(path, `grants.${name}`);
      if (!this.settingsClasses.has(name)) return [`${settingsPath}: ${UNKNOWN_GRANT}`];
      const type = this.settingsClasses.settings(name, owner);
      if (!type) return [`${settingsPath}: ${NO_SETTINGS}`];
      return isMapping(value) ? validated(type, value, settingsPath)[1] : [`${settingsPath}: must be a mapping`];
    });
  }

  /** Items that are no strings are left to the class of the entry. */
  private grantTypeViolations(path: string, { grant_types }: Entry): string[] {
    return (Array.isArray(grant_types) ? grant_types : []).flatMap((name, index) =>
      typeof name !== 'string' || this.settingsClasses.has(name)
        ? []
        : [`${fieldPath(path, 'grant_types')}[${index}]: ${UNKNOWN_GRANT}`],
    );
  }
}

/** Whether an entry needs a secret that it does not name. An entry with keys needs none. */
function lacksSecret({ secret }: EntryKind, entry: Entry): boolean {
  const hasKeys = [entry.jwks, entry.jwks_uri, entry.federated].some((keys) => keys !== undefined);
  return secret?.isRequired === true && entry[secret.field] === undefined && !hasKeys;
}

const requiredSecret = (kind: EntryKind) =>
  kind.secret?.removed ? 'required without jwks, jwks_uri and federated' : `required for a new ${nounOf(kind)}`;

export function hasSecret({ secret }: EntryKind, row: ObjectLiteral | undefined): boolean {
  return secret !== undefined && Boolean(row?.[secret.column]);
}

/** A violation of the form of the email is left to the class of the entry. */
function agentViolations(
  path: string,
  client: Entry,
  organizationOfAgent: OtherEntries['organizationOfAgent'],
): string[] {
  const { agent, client_type, organization_id } = client;
  if (typeof agent !== 'string' || canonicalEmail(agent) === undefined) return [];
  const agentPath = fieldPath(path, 'agent');
  if (client_type !== 'server' || organization_id === undefined) return [`${agentPath}: ${NO_AGENT}`];
  const organization = organizationOfAgent(agent);
  if (organization === undefined) return [`${agentPath}: not a registered agent`];
  return organization === true || organization === organization_id ? [] : [`${agentPath}: ${FOREIGN_AGENT}`];
}

/** A list or a mapping must fit into a `text` of MySQL, on each database. */
function sizeViolations(path: string, entry: Entry): string[] {
  return Object.entries(entry)
    .filter(([, value]) => value instanceof Object && Buffer.byteLength(JSON.stringify(value)) > MAX_VALUE_BYTES)
    .map(([field]) => `${fieldPath(path, field)}: must have at most ${MAX_VALUE_BYTES} bytes as JSON`);
}
