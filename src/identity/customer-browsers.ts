import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsArray, IsISO8601, IsString, ValidateNested } from 'class-validator';
import { MigrationState } from '../access-token/migration-state.js';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Optional } from '../oauth/parameters.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { DAY_MS } from '../platform/day.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-property.js';
import { cursorAfter, keyOfCursor } from '../registry/list-cursor.js';
import { MAX_PAGE_ENTRIES, type PageQuery } from '../registry/page-query.js';
import { ForgottenBrowsers } from './forgotten-browsers.js';
import { IdleRule } from './idle-rule.js';
import { deleteUnusedAncestors, FIND_REDEMPTION_OF_LINK } from './link-statements.js';
import { LINK_HAS_ENDED } from './recognise-statements.js';

/** A browser that leads to a customer, in responses to the operator. */
export class BrowserRecord {
  @IsString()
  @ApiProperty('The id of the browser.', EXAMPLE.browserId)
  id: string;

  @IsISO8601()
  @ApiProperty('The last day on which the browser used the customer (UTC).', '2026-11-22')
  last_seen_day: string;
}

/** A page of the browsers that lead to a customer. */
export class BrowserPage {
  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => BrowserRecord)
  @ApiProperty('The browsers of the page, in the order of their ids.')
  browsers: BrowserRecord[];

  @Optional()
  @IsString()
  @ApiProperty('The value of `cursor` for the next page. Absent on the last page.', EXAMPLE.cursor)
  next_cursor?: string;
}

/** A browser without a secret leads to no customer. */
const HAS_SECRET = "browser.secret_hash <> ''";

interface BrowserRow {
  browser_id: string;
  organization_id: string;
  seen_day: number;
}

/**
 * The browser that created the customer, unless its own row has ended, and the browsers with a link that has not.
 *
 * @param condition of the column `browser_id`, or an empty text
 */
const browsersWith = (condition: string) =>
  `SELECT own.browser_id AS browser_id, own.organization_id AS organization_id,
      COALESCE(own.scope_seen_day, browser.last_seen_day) AS seen_day
    FROM customer_identity own JOIN customer_identity browser ON browser.entity_id = own.browser_id
    WHERE own.entity_id = ? AND own.organization_id IS NOT NULL AND ${HAS_SECRET}
      AND own.unlinked_at IS NULL AND COALESCE(own.link_generation, 0) = 0
      AND NOT EXISTS (SELECT 1 FROM browser_link WHERE browser_link.browser_id = own.browser_id
        AND browser_link.organization_id = own.organization_id AND browser_link.group_id = own.group_id)
      ${condition && `AND own.browser_id ${condition}`}
    UNION ALL SELECT link.browser_id, link.organization_id, link.scope_seen_day
    FROM browser_link link
    JOIN customer_identity linked ON linked.entity_id = link.entity_id
    JOIN customer_identity browser ON browser.entity_id = link.browser_id
    WHERE link.entity_id = ? AND ${HAS_SECRET} AND NOT (${LINK_HAS_ENDED})
      ${condition && `AND link.browser_id ${condition}`}`;

const FIND_LAST_SEEN = selectStatement<[entityId: string, entityId: string], BrowserRow>(
  `${browsersWith('')} ORDER BY seen_day DESC, browser_id LIMIT ${MAX_PAGE_ENTRIES}`,
);

const FIND_BROWSER = selectStatement<
  [entityId: string, browserId: string, entityId: string, browserId: string],
  BrowserRow
>(browsersWith('= ?'));

/** One more row than a page has, by which the page knows whether another one follows. */
const FIND_AFTER = selectStatement<[entityId: string, after: string, entityId: string, after: string], BrowserRow>(
  `${browsersWith('> ?')} ORDER BY browser_id LIMIT ${MAX_PAGE_ENTRIES + 1}`,
);

const UNLINK = writeStatement<[now: Date, entityId: string, browserId: string]>(
  'UPDATE customer_identity SET unlinked_at = ? WHERE unlinked_at IS NULL AND entity_id = ? AND browser_id = ?',
);

const DELETE_LINK = writeStatement<[entityId: string, browserId: string]>(
  'DELETE FROM browser_link WHERE entity_id = ? AND browser_id = ?',
);

/** Lists and ends the links from browsers to a customer, for the operator (protocol §9.2). */
@Injectable()
export class CustomerBrowsers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly audit: Audit,
    private readonly idleRule: IdleRule,
    private readonly forgotten: ForgottenBrowsers,
    private readonly migration: MigrationState,
  ) {}

  /** The browsers that lead to a customer, the one seen last first, at most 200. */
  async lastSeen(entityId: string): Promise<BrowserRecord[]> {
    return this.recordsOf(await this.database.select(FIND_LAST_SEEN, [entityId, entityId]));
  }

  /** All browsers that lead to a customer in pages, in the order of their ids. An idle browser leaves a gap in its page. */
  async page(entityId: string, { limit = String(MAX_PAGE_ENTRIES), cursor }: PageQuery): Promise<BrowserPage> {
    const list = `identities/${entityId}/browsers`;
    const after = cursor === undefined ? '' : keyOfCursor(list, cursor);
    if (after === undefined) throw OAuthError.invalidRequest('cursor: not a next_cursor of this list');
    const rows = await this.database.select(FIND_AFTER, [entityId, after, entityId, after]);
    const page = rows.slice(0, Number(limit));
    const last = page.at(-1);
    const isLast = last === undefined || page.length === rows.length;
    const browsers = this.recordsOf(page);
    return isLast ? { browsers } : { browsers, next_cursor: cursorAfter(list, last.browser_id) };
  }

  private recordsOf(rows: BrowserRow[]): BrowserRecord[] {
    return rows
      .filter(({ organization_id, seen_day }) => !this.idleRule.isIdle(organization_id, seen_day))
      .map(({ browser_id: id, seen_day }) => ({ id, last_seen_day: isoDay(seen_day) }));
  }

  /**
   * Ends the link from one browser to a customer. Other links, and tokens, are not ended.
   *
   * @returns whether the browser led to the customer
   * @throws OAuthError `temporarily_unavailable` until the upgrade is complete, because processes of release 1 ignore
   * the end
   */
  async end(entityId: string, browserId: string): Promise<boolean> {
    await this.migration.assertComplete();
    const found = await this.database.select(FIND_BROWSER, [entityId, browserId, entityId, browserId]);
    if (this.recordsOf(found).length === 0) return false;
    await this.database.executeIdempotent(UNLINK, [new Date(this.clock.now()), entityId, browserId]);
    const links = await this.database.select(FIND_REDEMPTION_OF_LINK, [browserId, entityId]);
    await this.database.executeIdempotent(DELETE_LINK, [entityId, browserId]);
    await deleteUnusedAncestors(this.database, links);
    await this.forgotten.disableIfLeadNowhere([browserId]);
    const subject = { kind: 'customer', id: entityId } as const;
    const details = { browser: browserId };
    this.audit.record({ event: 'browser.ended', outcome: 'success', actor: operatorActor(), subject, details });
    return true;
  }
}

function isoDay(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}
