import { Injectable } from '@nestjs/common';
import { type EntityManager, In } from 'typeorm';
import { Audit, party } from '../audit/audit.js';
import { Clock, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { type SqlValue, sqlFlag } from '../platform/database/sql-dialect.js';
import { type EntityRow, type NotNull, type OrNull, selectStatement } from '../platform/database/statement.js';
import { portionsOf, valueList } from '../platform/database/value-list.js';
import { BrowserLink, type KnownBrowser } from './browser-link.entity.js';
import { matchingCookie } from './browser-recognition.js';
import type { CustomerIdentity } from './customer-identity.entity.js';
import { CANDIDATE_LIST, type CandidateCredentials, padded, partsOf } from './identity-cookies.js';
import { copiesOf, IS_COPY, LINK_LEADS, raiseVersions, removeSecretsOfUnlinked, unlink } from './links.js';

/** An organization, or one of its groups. */
interface ForgottenScope {
  organizationId: string;
  /** If omitted, all groups of the organization. */
  groupId: string | undefined;
}

/** A link with its browser. A browser without links has one row without a link. */
type FoundRow = EntityRow<KnownBrowser, 'browser_id' | 'secret_hash'> &
  OrNull<Pick<BrowserLink, 'entityId'>> &
  OrNull<EntityRow<CustomerIdentity, 'organization_id' | 'group_id'>> & {
    /** 1 if the link leads to its customer (`LINK_LEADS`). */
    leads: number;
    /** Whether the link itself is in no organization any more. */
    is_unlinked: number;
    /** Whether this link or a copy of it is in an organization. */
    is_left: number;
    is_presented: number;
  };

type FoundLink = NotNull<FoundRow>;

/**
 * The only statement of a request with nothing left to end. As long as a copy of a link is left, the link counts even
 * if it leads nowhere. Otherwise `forget` could not reach a thief whose copies replaced the link.
 */
const FIND_BROWSERS = selectStatement<SqlValue[], FoundRow>(
  `SELECT browser.browser_id, browser.secret_hash, link.entity_id AS entityId, customer.organization_id,
      customer.group_id, ${sqlFlag(LINK_LEADS)} AS leads,
      ${sqlFlag('link.organization_id IS NULL')} AS is_unlinked,
      ${sqlFlag(`EXISTS (SELECT 1 FROM browser_customer copy WHERE ${IS_COPY})`)} AS is_left,
      ${sqlFlag(`EXISTS (SELECT 1 FROM browser_customer presented
        WHERE presented.browser_id = browser.browser_id AND presented.entity_id IN (${CANDIDATE_LIST}))`)} AS is_presented
    FROM browser
    LEFT JOIN browser_customer link ON link.browser_id = browser.browser_id
    LEFT JOIN customer ON customer.entity_id = link.entity_id
    WHERE browser.browser_id IN (${CANDIDATE_LIST})`,
);

/** The number of customers whose links one transaction ends. Each of them has at most 101. */
const CUSTOMERS_PER_TRANSACTION_COUNT = 8;

/** Ends the links from browsers to the customers of an organization (protocol §4.13). */
@Injectable()
export class Forget {
  constructor(
    private readonly database: Database,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  /** @returns whether no browser of the request leads to a customer */
  async browsers(candidates: CandidateCredentials | undefined, scope: ForgottenScope): Promise<boolean> {
    if (!candidates) return true;
    const { organizationId, groupId } = scope;
    const rows = await this.find(candidates);
    const browserIds = [...new Set(rows.map(({ browser_id }) => browser_id))];
    if (browserIds.length === 0) return true;
    const leading = new Set(rows.filter(({ leads }) => leads === 1).map(({ browser_id }) => browser_id));
    const ofScope = rows.filter(
      (row) => row.organization_id === organizationId && (groupId === undefined || row.group_id === groupId),
    );
    const left = ofScope.filter(({ is_left }) => is_left !== 0) as FoundLink[];
    if (leading.size === browserIds.length && left.length === 0) return false;
    const unlinked = await this.end(browserIds, left, scope);
    return unlinked.length === browserIds.length;
  }

  /**
   * Ends links in transactions of few customers each, because a browser leads to up to 500 customers, each with up to
   * 100 copies of the link. Each transaction also removes the secrets of other browsers that then lead nowhere, so that
   * a repetition can continue after a failure. The last transaction ends what parallel requests have added, and removes
   * the secrets of the request's browsers. Links that already lead nowhere are ended as well, so that they cost no
   * further request a transaction.
   *
   * @returns the browsers of the request that lead to no customer
   */
  private async end(browserIds: string[], left: FoundLink[], scope: ForgottenScope): Promise<string[]> {
    const portions = [...portionsOf(left, CUSTOMERS_PER_TRANSACTION_COUNT)];
    const last = portions.pop() ?? [];
    for (const portion of portions) {
      await this.database.transaction((manager) => this.endLinks(manager, browserIds, portion));
      this.auditForgotten(portion, scope);
    }
    const unlinked = await this.database.transaction(async (manager) => {
      await this.endLinks(manager, browserIds, last);
      const { organizationId, groupId } = scope;
      const ofScope = { organizationId, ...(groupId !== undefined && { groupId }) };
      const added = await manager.findBy(BrowserLink, { browserId: In(valueList(browserIds)), ...ofScope });
      if (added.length > 0) await this.endLinks(manager, browserIds, added);
      return removeSecretsOfUnlinked(manager, browserIds, this.today());
    });
    this.auditForgotten(last, scope);
    return unlinked;
  }

  /**
   * Changes the rows of the customers, then those of the browsers, then the links, as `remember` does. `remember` changes
   * the rows of the customers whose links it copies, so that no copy is missed.
   */
  private async endLinks(
    manager: EntityManager,
    browserIds: string[],
    links: Pick<BrowserLink, 'entityId'>[],
  ): Promise<void> {
    const ids = links.map(({ entityId }) => entityId);
    await raiseVersions(manager, 'customer', ids);
    const copies = await copiesOf(manager, browserIds, ids);
    const affected = new Set([...browserIds, ...copies.map(({ browserId }) => browserId)]);
    await raiseVersions(manager, 'browser', [...affected]);
    await unlink(manager, copies);
    const others = [...affected].filter((id) => !browserIds.includes(id));
    for (const portion of portionsOf(others)) await removeSecretsOfUnlinked(manager, portion, this.today());
  }

  /** The links of all browsers of the request. */
  private async find(candidates: CandidateCredentials): Promise<FoundRow[]> {
    const browserIds = candidates.secrets.map((secret) => partsOf(secret).browserId);
    const parameters = [this.today(), ...padded(candidates.entityIds), ...padded(browserIds)];
    const rows = await this.database.select(FIND_BROWSERS, parameters);
    return rows.filter((row) => row.is_presented !== 0 && matchingCookie(row, candidates) !== undefined);
  }

  private today(): number {
    return dayOf(this.clock.now());
  }

  /** One event for each browser, with the number of its links that led to a customer, or of which only copies were left. */
  private auditForgotten(ended: FoundLink[], { organizationId, groupId }: ForgottenScope): void {
    const counts = new Map<string, number>();
    for (const { browser_id: id } of ended.filter(({ leads, is_unlinked }) => leads === 1 || is_unlinked !== 0))
      counts.set(id, (counts.get(id) ?? 0) + 1);
    for (const [id, links] of counts) {
      const details = { links, ...(groupId !== undefined && { group: groupId }) };
      this.audit.success('browser.forgotten', party('customer'), party('browser', id), { organizationId, details });
    }
  }
}
