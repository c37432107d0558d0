import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { portionsOf, valueList } from '../platform/database/value-list.js';
import { dayOf } from '../platform/day.js';
import {
  deleteLinks,
  deleteLinksTo,
  FIND_BROWSER_AND_ORIGINS,
  FIND_MADE_FROM,
  type ForgottenScope,
  findCustomers,
  findLedOrganizations,
  findRedemptions,
  findSecrets,
  parametersOf,
  RESTORE_SECRET,
  removeSecrets,
  unlinkRows,
} from './forget-statements.js';
import type { CandidateCredentials } from './identity-cookies.js';
import { IdleRule } from './idle-rule.js';
import { KnownBrowsers } from './known-browsers.js';
import { deleteUnusedAncestors } from './link-statements.js';

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
   * customer loses its secret, so that a copy of its cookies leads to no customer. The browsers that were made from one
   * of them lose their links to the same customers.
   *
   * @param groupId if omitted, all groups of the organization
   * @returns whether no browser of the request leads to a customer
   */
  async forget(
    candidates: CandidateCredentials | undefined,
    organizationId: string,
    groupId: string | undefined,
  ): Promise<boolean> {
    const scope = { organizationId, groupId };
    const recognised = candidates
      ? await this.browsers.all(candidates, { organizationId, groupId: groupId ?? '' })
      : [];
    let leadsNowhere = true;
    for (const id of new Set(recognised.map(({ browserId }) => browserId))) {
      const browserAndOrigins = await this.database.select(FIND_BROWSER_AND_ORIGINS, [id]);
      const earliest = browserAndOrigins.at(-1)?.browser_id ?? id;
      const withSecret = browserAndOrigins.filter(({ secret_hash }) => secret_hash).map(({ browser_id }) => browser_id);
      if (withSecret.length === 0) continue;
      this.auditForgotten(id, scope, await this.unlink(valueList(withSecret), earliest, scope));
      if (!(await this.disableIfLeadNowhere(withSecret)).has(id)) leadsNowhere = false;
    }
    return leadsNowhere;
  }

  /**
   * Removes the secrets of browsers that lead to no customer. A request under way may create a customer for a browser.
   * If its INSERT comes before the UPDATE of this method, the secret stays, or the SELECT after the UPDATE sees the
   * customer and the secret is restored. If the INSERT comes later, the SELECT after the INSERT sees no secret.
   *
   * @returns the browsers that lead to no customer
   */
  async disableIfLeadNowhere(browsers: string[]): Promise<Set<string>> {
    const disabled = new Set<string>();
    for (const ids of portionsOf(browsers)) for (const id of await this.disablePortion(ids)) disabled.add(id);
    return disabled;
  }

  private async disablePortion(browsers: string[]): Promise<Iterable<string>> {
    const nowhere = await this.leadingNowhere(browsers);
    if (nowhere.length === 0) return [];
    const list = valueList(nowhere);
    const secrets = await this.database.select(findSecrets(list), list);
    if (secrets.length === 0) return nowhere;
    const ids = valueList(secrets.map(({ entity_id }) => entity_id));
    // No customer of the last two days is idle.
    const yesterday = dayOf(this.clock.now()) - 1;
    await this.database.executeIdempotent(removeSecrets(ids), [...ids, ...ids, ...ids, yesterday]);
    const disabled = new Set(await this.leadingNowhere(nowhere));
    for (const { entity_id, secret_hash } of secrets)
      if (!disabled.has(entity_id)) await this.database.executeIdempotent(RESTORE_SECRET, [secret_hash, entity_id]);
    return disabled;
  }

  /**
   * The links of later browsers are deleted before the links that show their customers, so that a repeated request
   * finds the rest after an error. They are deleted again afterwards for a `remember` under way, which reads the links of
   * the earlier browser again after its INSERT. If that SELECT comes before the DELETE of these links, the second DELETE
   * sees the new links.
   *
   * @param browsers a `valueList`
   * @param earliest the earliest of the browsers
   * @returns the number of links that have ended
   */
  private async unlink(browsers: string[], earliest: string, scope: ForgottenScope): Promise<number> {
    const { database } = this;
    const parameters = [...browsers, ...parametersOf(scope)];
    const found = await database.select(findCustomers(browsers, scope), [...parameters, ...parameters]);
    const entityIds = found.map(({ entity_id }) => entity_id);
    const now = new Date(this.clock.now());
    const rows = await database.executeIdempotent(unlinkRows(browsers, scope), [now, ...parameters]);
    const copies = await this.deleteCopies(entityIds, earliest, scope);
    const redemptions = await database.select(findRedemptions(browsers, scope), parameters);
    const links = await database.executeIdempotent(deleteLinks(browsers, scope), parameters);
    await deleteUnusedAncestors(database, redemptions);
    return rows + copies + links + (await this.deleteCopies(entityIds, earliest, scope));
  }

  /** Deletes the links to these customers in the browsers that were made from one. */
  private async deleteCopies(entityIds: string[], earliest: string, scope: ForgottenScope): Promise<number> {
    const { database } = this;
    const rows = await database.select(FIND_MADE_FROM, [earliest]);
    const derivedBrowsers = rows.map(({ browser_id }) => browser_id);
    let deleted = 0;
    for (const browsers of [...portionsOf(derivedBrowsers)].map(valueList))
      for (const ids of [...portionsOf(entityIds)].map(valueList)) {
        const parameters = [...browsers, ...parametersOf(scope), ...ids];
        const redemptions = await database.select(findRedemptions(browsers, scope), parameters.slice(0, -ids.length));
        deleted += await database.executeIdempotent(deleteLinksTo(ids, browsers, scope), parameters);
        await deleteUnusedAncestors(database, redemptions);
      }
    return deleted;
  }

  private auditForgotten(browserId: string, { organizationId, groupId }: ForgottenScope, links: number): void {
    if (links === 0) return;
    const subject = { kind: 'browser', id: browserId } as const;
    const actor = { kind: 'customer' } as const;
    const details = { links, ...(groupId !== undefined && { group: groupId }) };
    this.audit.record({ event: 'browser.forgotten', outcome: 'success', actor, subject, organizationId, details });
  }

  private async leadingNowhere(browsers: string[]): Promise<string[]> {
    const list = valueList(browsers);
    const led = await this.database.select(findLedOrganizations(list), [...list, ...list]);
    const active = led.filter(({ organization_id, seen_day }) => !this.idleRule.isIdle(organization_id, seen_day));
    const leading = new Set(active.map(({ browser_id }) => browser_id));
    return browsers.filter((browser) => !leading.has(browser));
  }
}
