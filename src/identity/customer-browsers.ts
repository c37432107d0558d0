import { Injectable } from '@nestjs/common';
import { IsISO8601, IsString } from 'class-validator';
import type { EntityManager } from 'typeorm';
import { Denylist } from '../access-token/denylist.js';
import { Audit } from '../audit/audit.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { Database } from '../platform/database/database.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { DAY_MS } from '../platform/day.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-property.js';
import { ForgottenBrowsers } from './forgotten-browsers.js';
import type { CandidateCredentials } from './identity-cookies.js';
import { IdleRule } from './idle-rule.js';
import {
  claimsOfLink,
  deleteUnusedAncestors,
  LINK_HAS_ENDED,
  type LinkRow,
  raiseVersions,
  UNLINK,
  unlink,
} from './links.js';
import { RecognizedBrowsers } from './recognized-browsers.js';

/** A browser that leads to a customer, in responses to the operator. */
export class BrowserRecord {
  @IsString()
  @ApiProperty('The id of the browser.', EXAMPLE.browserId)
  id: string;

  @IsISO8601()
  @ApiProperty('The last day on which the browser used the customer (UTC).', '2026-11-22')
  last_seen_day: string;
}

/** The number of links that one transaction ends. */
const LINKS_PER_TRANSACTION_COUNT = 500;

type FoundLink = Pick<
  LinkRow,
  'browser_id' | 'entity_id' | 'organization_id' | 'group_id' | 'origin' | 'generation' | 'seen_day' | 'lineage'
>;

const FIND_LINKS = selectStatement<[entityId: string], FoundLink>(
  `SELECT link.browser_id, link.entity_id, link.organization_id, link.group_id, link.origin, link.generation,
      link.seen_day, link.lineage
    FROM browser_customer link
    JOIN customer ON customer.entity_id = link.entity_id
    JOIN browser ON browser.browser_id = link.browser_id
    WHERE link.entity_id = ? AND link.organization_id IS NOT NULL AND browser.secret_hash <> ''
      AND NOT ${LINK_HAS_ENDED}
    ORDER BY link.seen_day DESC, link.browser_id`,
);

/** Ended links too. */
const FIND_SOME = selectStatement<[entityId: string], { browser_id: string }>(
  `SELECT browser_id FROM browser_customer WHERE entity_id = ? AND organization_id IS NOT NULL
    ORDER BY browser_id LIMIT ${LINKS_PER_TRANSACTION_COUNT}`,
);

/** Up to a browser, so that no link is ended whose browser was not read. */
const UNLINK_SOME = writeStatement<[entityId: string, lastBrowserId: string]>(
  `UPDATE browser_customer SET ${UNLINK} WHERE entity_id = ? AND browser_id <= ?`,
);

/** The browsers that lead to a customer. */
@Injectable()
export class CustomerBrowsers {
  constructor(
    private readonly database: Database,
    private readonly audit: Audit,
    private readonly idleRule: IdleRule,
    private readonly denylist: Denylist,
    private readonly browsers: RecognizedBrowsers,
    private readonly forgotten: ForgottenBrowsers,
  ) {}

  /** The browsers that lead to a customer, the one seen last first. */
  async list(entityId: string): Promise<BrowserRecord[]> {
    const links = await this.linksTo(entityId);
    return links.map(({ browser_id: id, seen_day }) => ({ id, last_seen_day: isoDay(seen_day) }));
  }

  /**
   * Whether a request may end all links to a customer: one of its browsers leads to the customer in another way than by
   * a transfer, or no browser does.
   */
  async mayEndLinks(candidates: CandidateCredentials | undefined, entityId: string): Promise<boolean> {
    const links = (await this.linksTo(entityId)).filter(({ origin }) => origin !== 'transfer');
    const [first] = links;
    if (!first) return true;
    const scope = { organizationId: first.organization_id, groupId: first.group_id };
    const known = await this.browsers.all(candidates, scope);
    return known.some(({ customer }) => customer?.entityId === entityId && customer.origin !== 'transfer');
  }

  /**
   * Ends the link from one browser to the customer. Other links, and tokens, are not ended.
   *
   * @returns whether the browser led to the customer
   */
  async end(entityId: string, browserId: string): Promise<boolean> {
    if (!(await this.list(entityId)).some(({ id }) => id === browserId)) return false;
    await this.database.transaction(async (manager) => {
      await raiseVersions(manager, 'browser', [browserId]);
      await unlink(manager, browserId, entityId);
      await this.forgotten.removeSecretsOfUnlinked(manager, [browserId]);
    });
    const subject = { kind: 'customer', id: entityId } as const;
    const details = { browser: browserId };
    this.audit.record({ event: 'browser.ended', outcome: 'success', actor: operatorActor(), subject, details });
    return true;
  }

  /**
   * Ends the links of a customer in a transaction that has raised its generation of links.
   *
   * @param removesSecrets whether a browser that leads to no other customer loses its secret, so that a copy of its
   *   cookies does not lead to its next customer
   * @returns whether more links are left, which already lead nowhere
   */
  async endSomeIn(manager: EntityManager, entityId: string, removesSecrets: boolean): Promise<boolean> {
    const found = await selectIn(manager, FIND_SOME, [entityId]);
    const last = found.at(-1);
    if (!last) return false;
    await writeIn(manager, UNLINK_SOME, [entityId, last.browser_id]);
    await deleteUnusedAncestors(manager, [entityId]);
    const browserIds = found.map(({ browser_id }) => browser_id);
    if (removesSecrets) await this.forgotten.removeSecretsOfUnlinked(manager, browserIds);
    return found.length === LINKS_PER_TRANSACTION_COUNT;
  }

  /** Ends the links that `endSomeIn` has left. */
  async endRest(entityId: string, removesSecrets: boolean): Promise<void> {
    let hasMore = true;
    while (hasMore) {
      hasMore = await this.database.transaction((manager) => this.endSomeIn(manager, entityId, removesSecrets));
    }
  }

  /** The links that lead to a customer, the one seen last first. */
  private async linksTo(entityId: string): Promise<FoundLink[]> {
    const rows = await this.database.select(FIND_LINKS, [entityId]);
    const active = rows.filter(({ organization_id, seen_day }) => !this.idleRule.isIdle(organization_id, seen_day));
    const live: FoundLink[] = [];
    for (const link of active) {
      const claims = claimsOfLink(link);
      if (!claims || !(await this.denylist.hasEnded(claims))) live.push(link);
    }
    return live;
  }
}

function isoDay(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}
