import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Denylist } from '../access-token/denylist.js';
import { Audit } from '../audit/audit.js';
import { Database } from '../platform/database/database.js';
import type { EntityRow, OrNull } from '../platform/database/entity-row.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { equalInConstantTime, sha256 } from '../platform/secret.js';
import type { BrowserLink } from './browser-link.entity.js';
import { type CandidateCredentials, MAX_CANDIDATES, partsOf } from './identity-cookies.js';
import { IdleRule } from './idle-rule.js';
import type { KnownBrowser } from './known-browser.entity.js';
import { claimsOfLink, LINK_HAS_ENDED, type LinkRow, linksOf, raiseVersions, unlinkCopies } from './links.js';

/** An organization, or one of its groups. */
interface ForgottenScope {
  organizationId: string;
  /** If omitted, all groups of the organization. */
  groupId: string | undefined;
}

/** A link that leads somewhere, with its browser. A browser without such a link has one row without a link. */
type FoundRow = EntityRow<KnownBrowser, 'browser_id' | 'secret_hash'> &
  OrNull<EntityRow<BrowserLink, 'entity_id' | 'organization_id' | 'group_id' | 'seen_day'>> & {
    has_ended: number | null;
    is_presented: number;
  };

const list = Array(MAX_CANDIDATES).fill('?').join();

/** The only statement of a request with nothing left to end. */
const FIND_BROWSERS = selectStatement<string[], FoundRow>(
  `SELECT browser.browser_id, browser.secret_hash, link.entity_id, link.organization_id, link.group_id, link.seen_day,
      ${LINK_HAS_ENDED} AS has_ended,
      EXISTS (SELECT 1 FROM browser_customer presented
        WHERE presented.browser_id = browser.browser_id AND presented.entity_id IN (${list})) AS is_presented
    FROM browser
    LEFT JOIN browser_customer link ON link.browser_id = browser.browser_id AND link.organization_id IS NOT NULL
    LEFT JOIN customer ON customer.entity_id = link.entity_id
    WHERE browser.browser_id IN (${list})`,
);

/** Ends the links from browsers to the customers of an organization (protocol §4.13). */
@Injectable()
export class ForgottenBrowsers {
  constructor(
    private readonly database: Database,
    private readonly audit: Audit,
    private readonly idleRule: IdleRule,
    private readonly denylist: Denylist,
  ) {}

  /**
   * Acts on all browsers of the request. Each of their links to a customer of the organization ends, and with it every
   * link to the same customer that began in the same browser. A browser that then leads to no customer loses its secret,
   * so that a copy of its cookies leads to no customer.
   *
   * @param groupId if omitted, all groups of the organization
   * @returns whether no browser of the request leads to a customer
   */
  async forget(
    candidates: CandidateCredentials | undefined,
    organizationId: string,
    groupId: string | undefined,
  ): Promise<boolean> {
    if (!candidates) return true;
    const scope = { organizationId, groupId };
    const rows = await this.find(candidates);
    const browserIds = [...new Set(rows.map(({ browser_id }) => browser_id))];
    if (browserIds.length === 0) return true;
    const leading = new Set(rows.filter((row) => this.leads(row)).map(({ browser_id }) => browser_id));
    if (leading.size === browserIds.length && !rows.some((row) => isIn(row, scope))) return false;
    const { ended, unlinked } = await this.database.transaction((manager) => this.end(manager, browserIds, scope));
    for (const id of browserIds) this.auditForgotten(id, scope, ended);
    return browserIds.every((id) => unlinked.has(id));
  }

  /**
   * Removes the secrets of browsers that lead to no customer. The rows of the browsers change first: a request under way
   * that creates a customer for one of them has done so, or finds no secret afterwards.
   *
   * @returns the browsers that lead to no customer
   */
  async removeSecretsOfUnlinked(manager: EntityManager, browserIds: string[]): Promise<Set<string>> {
    await raiseVersions(manager, 'browser', browserIds);
    const leading = await this.leadingOf(manager, await linksOf(manager, browserIds));
    const unlinked = browserIds.filter((id) => !leading.has(id));
    for (const portion of portionsOf(unlinked)) {
      const ids = valueList(portion);
      const remove = writeStatement<string[]>(
        `UPDATE browser SET secret_hash = '' WHERE browser_id IN (${placeholdersFor(ids)})`,
      );
      await writeIn(manager, remove, ids);
    }
    return new Set(unlinked);
  }

  /** The browsers with a link that leads to a customer. Only links from transfers cost a SELECT. */
  private async leadingOf(manager: EntityManager, links: LinkRow[]): Promise<Set<string>> {
    const active = links.filter(({ organization_id, seen_day }) => !this.idleRule.isIdle(organization_id, seen_day));
    const leading = new Set(active.filter(({ lineage }) => lineage === null).map(({ browser_id }) => browser_id));
    for (const link of active) {
      const claims = leading.has(link.browser_id) ? undefined : claimsOfLink(link);
      if (claims && !(await this.denylist.hasEndedIn(manager, claims))) leading.add(link.browser_id);
    }
    return leading;
  }

  private async end(manager: EntityManager, browserIds: string[], scope: ForgottenScope) {
    await raiseVersions(manager, 'browser', browserIds);
    const links = (await linksOf(manager, browserIds)).filter((link) => isIn(link, scope));
    // `remember` changes the rows of the customers whose links it copies, so that no copy is missed
    const ids = links.map(({ entity_id }) => entity_id);
    await raiseVersions(manager, 'customer', ids);
    const affected = new Set(browserIds);
    for (const beganIn of new Set(links.map(({ began_in }) => began_in))) {
      const ofBeginning = links.filter(({ began_in }) => began_in === beganIn).map(({ entity_id }) => entity_id);
      for (const id of await unlinkCopies(manager, [...new Set(ofBeginning)], beganIn)) affected.add(id);
    }
    return { ended: links.length, unlinked: await this.removeSecretsOfUnlinked(manager, [...affected]) };
  }

  private async find({ entityIds, secrets }: CandidateCredentials): Promise<FoundRow[]> {
    const cookies = secrets.map(partsOf);
    const browserIds = cookies.map(({ browserId }) => browserId);
    const rows = await this.database.select(FIND_BROWSERS, [...padded(entityIds), ...padded(browserIds)]);
    const isOf = (row: FoundRow) =>
      cookies.some(
        ({ browserId, secret }) => browserId === row.browser_id && equalInConstantTime(row.secret_hash, sha256(secret)),
      );
    return rows.filter((row) => row.is_presented !== 0 && isOf(row));
  }

  private leads({ organization_id, seen_day, has_ended }: FoundRow): boolean {
    return organization_id !== null && has_ended === 0 && !this.idleRule.isIdle(organization_id, seen_day as number);
  }

  private auditForgotten(browserId: string, { organizationId, groupId }: ForgottenScope, links: number): void {
    if (links === 0) return;
    const subject = { kind: 'browser', id: browserId } as const;
    const actor = { kind: 'customer' } as const;
    const details = { links, ...(groupId !== undefined && { group: groupId }) };
    this.audit.record({ event: 'browser.forgotten', outcome: 'success', actor, subject, organizationId, details });
  }
}

function isIn(
  link: Pick<FoundRow, 'organization_id' | 'group_id'>,
  { organizationId, groupId }: ForgottenScope,
): boolean {
  return link.organization_id === organizationId && (groupId === undefined || link.group_id === groupId);
}

function padded(values: string[]): string[] {
  return [...values, ...Array<string>(MAX_CANDIDATES - values.length).fill(values[0] as string)];
}
