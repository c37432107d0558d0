import { type EntityManager, type ObjectLiteral, Raw } from 'typeorm';
import { CLIENTS } from '../../registry/entries/client.entry.js';
import type { EntryKind } from '../../registry/entries/entry-kind.js';
import { ORGANIZATIONS } from '../../registry/entries/organization.entry.js';
import { RESOURCE_SERVERS } from '../../registry/entries/resource-server.entry.js';
import type { GrantSettingsClasses } from '../../registry/grant-settings-classes.js';
import { pagesOf } from '../../registry/row-pages.js';
import { type Entry, isMapping, type ListedEntries } from './entry.js';

/** What an owner accepts JWTs of. */
interface Accepted {
  /** What a JWT must name: its issuer, or its issuer and subject. */
  names: string[];
  /** If omitted, a default that the registry does not know. */
  audience: string[] | undefined;
}

const KINDS_WITH_KEYS = [CLIENTS, RESOURCE_SERVERS] as const;
/** All entries with keys are one owner of their issuers, because their subjects tell them apart. */
const WITH_KEYS = 'with keys';

/**
 * Which entries accept JWTs of which issuers. Two owners of the same names must both name their audiences, and
 * different ones. Otherwise a JWT that was made for one would be valid at the other (protocol §8.2).
 */
export class ProofIssuers {
  private readonly owners = new Map<string, Set<unknown>>();

  private constructor(private readonly settingsClasses: GrantSettingsClasses) {}

  static of(entries: ListedEntries, settingsClasses: GrantSettingsClasses): ProofIssuers {
    const issuers = new ProofIssuers(settingsClasses);
    for (const { entry } of entries.of(ORGANIZATIONS)) issuers.addOrganization(entry);
    for (const kind of KINDS_WITH_KEYS) for (const { entry } of entries.of(kind)) issuers.addEntry(kind, entry);
    return issuers;
  }

  /** Also reads the stored entries that the entries do not replace. */
  static async read(
    manager: EntityManager,
    entries: ListedEntries,
    settingsClasses: GrantSettingsClasses,
  ): Promise<ProofIssuers> {
    const issuers = ProofIssuers.of(entries, settingsClasses);
    const organizations = entries.of(ORGANIZATIONS).flatMap(({ entry }) => issuers.settingsOf(entry));
    const haveKeys = KINDS_WITH_KEYS.some((kind) => entries.of(kind).some(({ entry }) => acceptedOf(kind, entry)));
    const grants = haveKeys ? settingsClasses.withIssuer() : organizations.map(({ grant }) => grant);
    for (const grant of new Set(grants))
      for await (const row of storedRows(manager, ORGANIZATIONS, entries, 'grants', JSON.stringify(grant)))
        issuers.addOrganization(row);
    if (organizations.length === 0 && !haveKeys) return issuers;
    for (const kind of KINDS_WITH_KEYS)
      for await (const row of storedRows(manager, kind, entries, 'assertionKeys', ''))
        issuers.addEntry(kind, kind.toEntry(row as never) as Entry);
    return issuers;
  }

  /** The grants by which the organization would accept a JWT that was made for another owner. */
  sharedGrantsOf(organization: ObjectLiteral): string[] {
    return this.settingsOf(organization)
      .filter(({ accepted }) => this.isShared(accepted, organization.id))
      .map(({ grant }) => grant);
  }

  /** Whether an organization accepts the issuer of an entry with keys. */
  isIssuerShared(kind: EntryKind, entry: Entry): boolean {
    const accepted = acceptedOf(kind, entry);
    return accepted !== undefined && this.isShared(accepted.issuer, WITH_KEYS);
  }

  /** Whether another entry accepts the issuer and the subject of an entry with keys. */
  isIdentityShared(kind: EntryKind, entry: Entry): boolean {
    const accepted = acceptedOf(kind, entry);
    return accepted !== undefined && this.isShared(accepted.identity, ownerOf(kind, entry));
  }

  private isShared(accepted: Accepted, owner: unknown): boolean {
    return keysOf(accepted).exclusive.some((key) => {
      const owners = this.owners.get(key);
      return owners !== undefined && owners.size > Number(owners.has(owner));
    });
  }

  private addOrganization(organization: ObjectLiteral): void {
    for (const { accepted } of this.settingsOf(organization)) this.add(accepted, organization.id);
  }

  private addEntry(kind: EntryKind, entry: Entry): void {
    const accepted = acceptedOf(kind, entry);
    if (!accepted) return;
    this.add(accepted.issuer, WITH_KEYS);
    this.add(accepted.identity, ownerOf(kind, entry));
  }

  private add(accepted: Accepted, owner: unknown): void {
    for (const key of keysOf(accepted).used) this.owners.set(key, (this.owners.get(key) ?? new Set()).add(owner));
  }

  /** Settings with values of another type are left to their class. */
  private settingsOf({ grants }: ObjectLiteral): { grant: string; accepted: Accepted }[] {
    if (!isMapping(grants)) return [];
    return Object.entries(grants).flatMap(([grant, settings]) => {
      if (!this.settingsClasses.hasIssuer(grant) || !isMapping(settings)) return [];
      const { issuer, audience } = settings;
      if (typeof issuer !== 'string' || !(audience === undefined || Array.isArray(audience))) return [];
      return [{ grant, accepted: { names: [issuer], audience } }];
    });
  }
}

/** The stored rows whose JSON column is not null and contains a text, except those of listed entries. */
async function* storedRows(
  manager: EntityManager,
  kind: EntryKind,
  entries: ListedEntries,
  column: string,
  content: string,
): AsyncGenerator<ObjectLiteral, void> {
  const { key } = kind;
  const listed = new Set(entries.of(kind).map(({ entry }) => entry[key.field]));
  const pattern = `%${content}%`;
  const filter = { [column]: Raw((text) => `${text} LIKE :pattern`, { pattern }) };
  for await (const rows of pagesOf(manager, kind.entity, key.column, filter))
    for (const row of rows) if (!listed.has(row[key.column])) yield row;
}

const ownerOf = ({ name, key }: EntryKind, entry: Entry) => `${name} ${entry[key.field]}`;

/** `undefined` for an entry without keys. Values of another type are left to their class. */
function acceptedOf({ key }: EntryKind, entry: Entry): { issuer: Accepted; identity: Accepted } | undefined {
  const { jwks, jwks_uri, federated, [key.field]: id } = entry;
  const own = jwks === undefined && jwks_uri === undefined ? undefined : { issuer: id, subject: id };
  const identity: unknown = own ?? federated;
  if (!isMapping(identity)) return undefined;
  const { issuer, subject, audience } = identity;
  if (typeof issuer !== 'string' || typeof subject !== 'string') return undefined;
  const audiences = typeof audience === 'string' ? [audience] : undefined;
  return {
    issuer: { names: [issuer], audience: audiences },
    identity: { names: [issuer, subject], audience: audiences },
  };
}

/** `used`: what is accepted. `exclusive`: what no other owner may then accept. */
function keysOf({ names, audience }: Accepted): { used: string[]; exclusive: string[] } {
  const [all, unnamed] = ['all', 'unnamed'].map((kind) => JSON.stringify([names, kind])) as [string, string];
  if (!audience) return { used: [all, unnamed], exclusive: [all] };
  const named = audience.map((each) => JSON.stringify([names, 'named', each]));
  return { used: [all, ...named], exclusive: [unnamed, ...named] };
}
