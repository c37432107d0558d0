import { type EntityManager, type ObjectLiteral, Raw } from 'typeorm';
import { ORGANIZATIONS } from '../../registry/entries/organization.entry.js';
import type { GrantSettingsClasses } from '../../registry/grant-settings-classes.js';
import { Organization } from '../../registry/organization.entity.js';
import { pagesOf } from '../../registry/row-pages.js';
import { isMapping, type ListedEntries } from './entry.js';

/** The settings of an organization that say which proofs it accepts. */
interface ProofSettings {
  grant: string;
  issuer: string;
  /** If omitted, a default that the registry does not know. */
  audience?: string[] | undefined;
}

/**
 * Which organizations accept the proofs of which issuers. Two organizations with the same issuer must both name their
 * audiences, and different ones. Otherwise a proof that was made for one would be valid in the other (protocol §8.2).
 */
export class ProofIssuers {
  private readonly organizationIds = new Map<string, Set<string>>();

  private constructor(private readonly settingsClasses: GrantSettingsClasses) {}

  static of(entries: ListedEntries, settingsClasses: GrantSettingsClasses): ProofIssuers {
    const issuers = new ProofIssuers(settingsClasses);
    for (const { entry } of entries.of(ORGANIZATIONS)) issuers.add(entry);
    return issuers;
  }

  /** Also reads the stored organizations that the entries do not replace. */
  static async read(
    manager: EntityManager,
    entries: ListedEntries,
    settingsClasses: GrantSettingsClasses,
  ): Promise<ProofIssuers> {
    const issuers = ProofIssuers.of(entries, settingsClasses);
    const organizations = entries.of(ORGANIZATIONS).map(({ entry }) => entry);
    const listedIds = new Set(organizations.map(({ id }) => id));
    const settings = organizations.flatMap((organization) => issuers.settingsOf(organization));
    for (const grant of new Set(settings.map(({ grant }) => grant))) {
      const pattern = `%${JSON.stringify(grant)}%`; // the column has the settings as JSON
      const filter = { grants: Raw((column) => `${column} LIKE :pattern`, { pattern }) };
      for await (const rows of pagesOf(manager, Organization, 'id', filter))
        for (const row of rows) if (!listedIds.has(row.id)) issuers.add(row);
    }
    return issuers;
  }

  /** The grants by which the organization would accept a proof that was made for another one. */
  sharedGrantsOf(organization: ObjectLiteral): string[] {
    const isOfOther = (key: string) => {
      const ids = this.organizationIds.get(key);
      return ids !== undefined && ids.size > Number(ids.has(organization.id));
    };
    return this.settingsOf(organization)
      .filter((settings) => keysOf(settings).exclusive.some(isOfOther))
      .map(({ grant }) => grant);
  }

  private add(organization: ObjectLiteral): void {
    for (const key of this.settingsOf(organization).flatMap((settings) => keysOf(settings).used)) {
      const ids = this.organizationIds.get(key) ?? new Set();
      this.organizationIds.set(key, ids.add(organization.id));
    }
  }

  /** Settings with values of another type are left to their class. */
  private settingsOf({ grants }: ObjectLiteral): ProofSettings[] {
    if (!isMapping(grants)) return [];
    return Object.entries(grants).flatMap(([grant, settings]) => {
      if (!this.settingsClasses.hasIssuer(grant) || !isMapping(settings)) return [];
      const { issuer, audience } = settings;
      if (typeof issuer !== 'string' || !(audience === undefined || Array.isArray(audience))) return [];
      return [{ grant, issuer, audience }];
    });
  }
}

/** `used`: what the settings accept. `exclusive`: what no other organization may then accept. */
function keysOf({ issuer, audience }: ProofSettings): { used: string[]; exclusive: string[] } {
  const [all, unnamed] = ['all', 'unnamed'].map((kind) => JSON.stringify([issuer, kind])) as [string, string];
  if (!audience) return { used: [all, unnamed], exclusive: [all] };
  const named = audience.map((each) => JSON.stringify([issuer, 'named', each]));
  return { used: [all, ...named], exclusive: [unnamed, ...named] };
}
