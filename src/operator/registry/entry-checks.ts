import { Injectable } from '@nestjs/common';
import type { EntityManager, ObjectLiteral } from 'typeorm';
import { Configuration } from '../../platform/configuration/configuration.js';
import { isOfOtherCallers } from '../../platform/configuration/issuers.js';
import { canonicalEmail, comparableEmail } from '../../registry/agent-email.js';
import { AGENTS } from '../../registry/entries/agent.entry.js';
import { CLIENTS } from '../../registry/entries/client.entry.js';
import { type EntryKind, fileKeyOf } from '../../registry/entries/entry-kind.js';
import { ENTRY_KINDS } from '../../registry/entries/entry-kinds.js';
import { ORGANIZATIONS } from '../../registry/entries/organization.entry.js';
import { RESOURCE_SERVERS } from '../../registry/entries/resource-server.entry.js';
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
  'another organization accepts the same issuer, or an entry with keys does; each needs an audience, and no value may be in both';
const SHARED_ISSUER = 'an organization accepts the same issuer; both need an audience, and no value may be in both';
const SHARED_IDENTITY = 'another entry has the same issuer and subject; both need an audience, and different ones';
const SHARED_ID =
  'an organization has it as an issuer, or another entry as its issuer and subject; keys of its own need another id';
const OTHER_CALLERS = 'tokens of this issuer and audience are those of agents or operators, or of this service';
const NO_FOLDER = 'the service has no JWKS_DIR';

const REQUIRED_SECRET = 'required without jwks, jwks_uri and federated';

/** All violations of entries: those of their classes, and those that only other entries and the grants show. */
@Injectable()
export class EntryChecks {
  constructor(
    private readonly settingsClasses: GrantSettingsClasses,
    private readonly configuration: Configuration,
  ) {}

  async violations(
    manager: EntityManager,
    entries: ListedEntries,
    stored: StoredEntries,
    isSecretStored: OtherEntries['isSecretStored'],
  ): Promise<string[]> {
    const proofIssuers = await ProofIssuers.read(manager, entries, this.settingsClasses);
    const violations = this.violationsOf(entries, {
      proofIssuers,
      isSecretStored,
      hasOrganization: (id) => stored.hasOrganization(id),
      organizationOfAgent: (email) => stored.agentOf(email)?.organizationId,
    });
    return [...violations, ...unusableIdentities(entries, this.configuration)];
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
        violations.push(...sharedViolations(kind, path, entry, others.proofIssuers));
        const { organization_id: id } = entry;
        const organizationPath = fieldPath(path, 'organization_id');
        const isKnown = typeof id !== 'string' || organizationIds.has(id) || others.hasOrganization(id);
        if (!isKnown && !invalidPaths.has(organizationPath))
          violations.push(`${organizationPath}: not a registered organization`);
        if (kind === CLIENTS) violations.push(...agentViolations(path, entry, organizationOfAgent));
        if (lacksSecret(kind, entry) && !others.isSecretStored(kind, entry))
          violations.push(`${fieldPath(path, String(kind.secret?.field))}: ${REQUIRED_SECRET}`);
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

function sharedViolations(kind: EntryKind, path: string, entry: Entry, proofIssuers: ProofIssuers): string[] {
  const isIssuerShared = proofIssuers.isIssuerShared(kind, entry);
  const isIdentityShared = proofIssuers.isIdentityShared(kind, entry);
  if (entry.federated === undefined)
    return isIssuerShared || isIdentityShared ? [`${fieldPath(path, kind.key.field)}: ${SHARED_ID}`] : [];
  return [
    ...(isIssuerShared ? [`${fieldPath(path, 'federated.issuer')}: ${SHARED_ISSUER}`] : []),
    ...(isIdentityShared ? [`${fieldPath(path, 'federated.subject')}: ${SHARED_IDENTITY}`] : []),
  ];
}

/** Identities that this service would never accept. A command that reads no `JWKS_DIR` does not know the folder. */
function unusableIdentities(entries: ListedEntries, configuration: Configuration): string[] {
  const { AUTH_URL, JWKS_DIR, unused } = configuration;
  const listed = [...entries.of(CLIENTS), ...entries.of(RESOURCE_SERVERS)];
  return listed.flatMap(({ path, entry: { federated } }) => {
    if (!isMapping(federated)) return [];
    const { issuer, audience = AUTH_URL, jwks_file } = federated;
    const hasNoFolder = jwks_file !== undefined && JWKS_DIR === undefined && !unused.includes('JWKS_DIR');
    return [
      ...(isOfOtherCallers(configuration, issuer, audience)
        ? [`${fieldPath(path, 'federated.issuer')}: ${OTHER_CALLERS}`]
        : []),
      ...(hasNoFolder ? [`${fieldPath(path, 'federated.jwks_file')}: ${NO_FOLDER}`] : []),
    ];
  });
}

/** Whether an entry needs a secret that it does not name. An entry with keys needs none. */
function lacksSecret({ secret }: EntryKind, entry: Entry): boolean {
  return secret?.isRequired === true && entry[secret.field] === undefined && !hasKeys(entry);
}

export function hasKeys({ jwks, jwks_uri, federated }: Entry): boolean {
  return [jwks, jwks_uri, federated].some((keys) => keys !== undefined);
}

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

/**
 * A list or a mapping must fit into a `text` of MySQL, on each database. Keys are stored with the name of their field.
 */
function sizeViolations(path: string, entry: Entry): string[] {
  const columnOf = (field: string, value: unknown) =>
    ['jwks', 'federated'].includes(field) ? { [field]: value } : value;
  return Object.entries(entry)
    .filter(
      ([field, value]) =>
        value instanceof Object && Buffer.byteLength(JSON.stringify(columnOf(field, value))) > MAX_VALUE_BYTES,
    )
    .map(([field]) => `${fieldPath(path, field)}: must have at most ${MAX_VALUE_BYTES} bytes as JSON`);
}
