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

const FEDERATED_KINDS = [CLIENTS, RESOURCE_SERVERS] as const;
/** All federated entries are one owner of their issuers, because their subjects tell them apart. */
const FEDERATED = 'federated';

/**
 * Which entries accept JWTs of which issuers. Two owners of the same names must both name their audiences, and different
 * ones. Otherwise a JWT that was made for one would be valid at the other (protocol §8.2).
 */
export class ProofIssuers {
  private readonly owners = new Map<string, Set<unknown>>();

  private constructor(private readonly settingsClasses: GrantSettingsClasses) {}

  static of(entries: ListedEntries, settingsClasses: GrantSettingsClasses): ProofIssuers {
    const issuers = new ProofIssuers(settingsClasses);
    for (const { entry } of entries.of(ORGANIZATIONS)) issuers.addOrganization(entry);
    for (const kind of FEDERATED_KINDS) for (const { entry } of entries.of(kind)) issuers.addFederated(kind, entry);
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
    const areFederated = FEDERATED_KINDS.some((kind) => entries.of(kind).some(({ entry }) => acceptedOf(entry)));
    const grants = areFederated ? settingsClasses.withIssuer() : organizations.map(({ grant }) => grant);
    for (const grant of new Set(grants))
      for await (const row of storedRows(manager, ORGANIZATIONS, entries, 'grants', grant))
        issuers.addOrganization(row);
    if (organizations.length === 0 && !areFederated) return issuers;
    for (const kind of FEDERATED_KINDS)
      for await (const row of storedRows(manager, kind, entries, 'assertionKeys', FEDERATED))
        issuers.addFederated(kind, kind.toEntry(row as never) as Entry);
    return issuers;
  }

  /** The grants by which the organization would accept a JWT that was made for another owner. */
  sharedGrantsOf(organization: ObjectLiteral): string[] {
    return this.settingsOf(organization)
      .filter(({ accepted }) => this.isShared(accepted, organization.id))
      .map(({ grant }) => grant);
  }

  /** Whether an organization accepts the issuer of a federated entry. */
  isIssuerShared(entry: Entry): boolean {
    const accepted = acceptedOf(entry);
    return accepted !== undefined && this.isShared(accepted.issuer, FEDERATED);
  }

  /** Whether another entry has the federated identity of an entry. */
  isIdentityShared(kind: EntryKind, entry: Entry): boolean {
    const accepted = acceptedOf(entry);
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

  private addFederated(kind: EntryKind, entry: Entry): void {
    const accepted = acceptedOf(entry);
    if (!accepted) return;
    this.add(accepted.issuer, FEDERATED);
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

/** The stored rows whose JSON column has a name, except those of listed entries. */
async function* storedRows(
  manager: EntityManager,
  kind: EntryKind,
  entries: ListedEntries,
  column: string,
  name: string,
): AsyncGenerator<ObjectLiteral, void> {
  const { key } = kind;
  const listed = new Set(entries.of(kind).map(({ entry }) => entry[key.field]));
  const pattern = `%${JSON.stringify(name)}%`;
  const filter = { [column]: Raw((text) => `${text} LIKE :pattern`, { pattern }) };
  for await (const rows of pagesOf(manager, kind.entity, key.column, filter))
    for (const row of rows) if (!listed.has(row[key.column])) yield row;
}

const ownerOf = ({ name, key }: EntryKind, entry: Entry) => `${name} ${entry[key.field]}`;

/** `undefined` for an entry that is not federated. Values of another type are left to their class. */
function acceptedOf({ federated }: Entry): { issuer: Accepted; identity: Accepted } | undefined {
  if (!isMapping(federated)) return undefined;
  const { issuer, subject, audience } = federated;
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
