import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsArray, IsISO8601, IsString, ValidateNested } from 'class-validator';
import type { EntityManager } from 'typeorm';
import { Denylist } from '../access-token/denylist.js';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Optional } from '../oauth/parameters.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { Database } from '../platform/database/database.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { DAY_MS } from '../platform/day.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-property.js';
import { cursorAfter, keyOfCursor } from '../registry/list-cursor.js';
import { MAX_PAGE_ENTRIES, type PageQuery } from '../registry/page-query.js';
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

/** The number of links that one transaction ends. */
const LINKS_PER_TRANSACTION_COUNT = 500;

type FoundLink = Pick<
  LinkRow,
  'browser_id' | 'entity_id' | 'organization_id' | 'group_id' | 'origin' | 'generation' | 'seen_day' | 'lineage'
>;

/** @param rest further conditions, the order and the limit */
const linksWith = (
  rest: string,
) => `SELECT link.browser_id, link.entity_id, link.organization_id, link.group_id, link.origin, link.generation,
      link.seen_day, link.lineage
    FROM browser_customer link
    JOIN customer ON customer.entity_id = link.entity_id
    JOIN browser ON browser.browser_id = link.browser_id
    WHERE link.entity_id = ? AND link.organization_id IS NOT NULL AND browser.secret_hash <> ''
      AND NOT ${LINK_HAS_ENDED} ${rest}`;

const FIND_LAST_SEEN = selectStatement<[entityId: string], FoundLink>(
  linksWith(`ORDER BY link.seen_day DESC, link.browser_id LIMIT ${MAX_PAGE_ENTRIES}`),
);

const FIND_BROWSER = selectStatement<[entityId: string, browserId: string], FoundLink>(
  linksWith('AND link.browser_id = ?'),
);

/** One more row than a page has, by which the page knows whether another one follows. */
const FIND_AFTER = selectStatement<[entityId: string, after: string], FoundLink>(
  linksWith(`AND link.browser_id > ? ORDER BY link.browser_id LIMIT ${MAX_PAGE_ENTRIES + 1}`),
);

const FIND_NOT_TRANSFERRED = selectStatement<[entityId: string], FoundLink>(
  linksWith("AND link.origin <> 'transfer' ORDER BY link.seen_day DESC LIMIT 1"),
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

  /** The browsers that lead to a customer, the one seen last first, at most 200. */
  async lastSeen(entityId: string): Promise<BrowserRecord[]> {
    return this.recordsOf(await this.database.select(FIND_LAST_SEEN, [entityId]));
  }

  /** All browsers that lead to a customer in pages, in the order of their ids. An ended link leaves a gap in its page. */
  async page(entityId: string, { limit = String(MAX_PAGE_ENTRIES), cursor }: PageQuery): Promise<BrowserPage> {
    const list = `identities/${entityId}/browsers`;
    const after = cursor === undefined ? '' : keyOfCursor(list, cursor);
    if (after === undefined) throw OAuthError.invalidRequest('cursor: not a next_cursor of this list');
    const rows = await this.database.select(FIND_AFTER, [entityId, after]);
    const page = rows.slice(0, Number(limit));
    const last = page.at(-1);
    const isLast = last === undefined || page.length === rows.length;
    const browsers = await this.recordsOf(page);
    return isLast ? { browsers } : { browsers, next_cursor: cursorAfter(list, last.browser_id) };
  }

  /**
   * Whether a request may end all links to a customer: one of its browsers leads to the customer in another way than by
   * a transfer, or no browser does.
   */
  async mayEndLinks(candidates: CandidateCredentials | undefined, entityId: string): Promise<boolean> {
    const [first] = await this.live(await this.database.select(FIND_NOT_TRANSFERRED, [entityId]));
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
    if ((await this.live(await this.database.select(FIND_BROWSER, [entityId, browserId]))).length === 0) return false;
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

  private async recordsOf(rows: FoundLink[]): Promise<BrowserRecord[]> {
    const links = await this.live(rows);
    return links.map(({ browser_id: id, seen_day }) => ({ id, last_seen_day: isoDay(seen_day) }));
  }

  /** Without idle links, and without links from transfers that have ended. */
  private async live(rows: FoundLink[]): Promise<FoundLink[]> {
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
