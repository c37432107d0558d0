import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { FIND_SECRET } from './customer-statements.js';
import {
  FIND_BROWSER_AND_ORIGINS,
  FIND_LED_ORGANIZATIONS,
  REMOVE_SECRET,
  RESTORE_SECRET,
  UNLINK_GROUP,
  UNLINK_GROUP_LINKS,
  UNLINK_ORGANIZATION,
  UNLINK_ORGANIZATION_LINKS,
} from './forget-statements.js';
import type { CandidateCredentials } from './identity-cookies.js';
import { IdleRule } from './idle-rule.js';
import { KnownBrowsers } from './known-browsers.js';

/** Ends the links from browsers to the customers of an organization (protocol §4.13). */
@Injectable()
export class ForgottenBrowsers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly browsers: KnownBrowsers,
    private readonly audit: Audit,
    private readonly idleRule: IdleRule,
  ) {}

  /**
   * Acts on all browsers of the request and on the browsers that these were made from. A browser that then leads to no
   * customer loses its secret, so that a copy of its cookies leads to no customer.
   *
   * @param groupId if omitted, all groups of the organization
   * @returns whether no browser of the request leads to a customer
   */
  async forget(
    candidates: CandidateCredentials | undefined,
    organizationId: string,
    groupId: string | undefined,
  ): Promise<boolean> {
    const shown = candidates ? await this.browsers.all(candidates, { organizationId, groupId: groupId ?? '' }) : [];
    const shownIds = new Set(shown.map(({ browserId }) => browserId));
    const ids = new Set<string>();
    for (const id of shownIds)
      for (const { browser_id } of await this.database.select(FIND_BROWSER_AND_ORIGINS, [id])) ids.add(browser_id);
    for (const id of ids) await this.unlink(id, organizationId, groupId);
    let leadsNowhere = true;
    for (const id of ids) if (!(await this.disableIfLeadsNowhere(id)) && shownIds.has(id)) leadsNowhere = false;
    return leadsNowhere;
  }

  /**
   * Removes the secret of a browser that leads to no customer. A request under way may create a customer for the
   * browser: it reads the secret after its INSERT, and this method reads the customers after its UPDATE, so that one of
   * the two notices the other.
   *
   * @returns whether the browser leads to no customer
   */
  async disableIfLeadsNowhere(browserId: string): Promise<boolean> {
    if (await this.leadsToCustomer(browserId)) return false;
    const [row] = await this.database.select(FIND_SECRET, [browserId]);
    const secretHash = row?.secret_hash ?? '';
    if (secretHash === '') return true;
    await this.database.executeIdempotent(REMOVE_SECRET, [browserId, secretHash]);
    if (!(await this.leadsToCustomer(browserId))) return true;
    await this.database.executeIdempotent(RESTORE_SECRET, [secretHash, browserId]);
    return false;
  }

  private async unlink(browserId: string, organizationId: string, groupId: string | undefined): Promise<void> {
    const now = new Date(this.clock.now());
    const { database } = this;
    const changed =
      groupId === undefined
        ? (await database.executeIdempotent(UNLINK_ORGANIZATION, [now, browserId, organizationId])) +
          (await database.executeIdempotent(UNLINK_ORGANIZATION_LINKS, [browserId, organizationId]))
        : (await database.executeIdempotent(UNLINK_GROUP, [now, browserId, organizationId, groupId])) +
          (await database.executeIdempotent(UNLINK_GROUP_LINKS, [browserId, organizationId, groupId]));
    if (changed === 0) return;
    const subject = { kind: 'browser', id: browserId } as const;
    const actor = { kind: 'customer' } as const;
    const details = { links: changed, ...(groupId !== undefined && { group: groupId }) };
    this.audit.record({ event: 'browser.forgotten', outcome: 'success', actor, subject, organizationId, details });
  }

  private async leadsToCustomer(browserId: string): Promise<boolean> {
    const led = await this.database.select(FIND_LED_ORGANIZATIONS, [browserId, browserId]);
    return led.some(({ organization_id, seen_day }) => !this.idleRule.isIdle(organization_id, seen_day));
  }
}
