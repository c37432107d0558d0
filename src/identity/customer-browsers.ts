import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsArray, IsISO8601, ValidateNested } from 'class-validator';
import { Audit, party } from '../audit/audit.js';
import { OptionalText, Text } from '../oauth/parameters.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { Clock, DAY_MS, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
import { type EntityRow, type NotNull, selectStatement } from '../platform/database/statement.js';
import { placeholdersFor, valueList } from '../platform/database/value-list.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { sha256 } from '../platform/secret.js';
import { cursorAfter, MAX_PAGE_ENTRIES, type PageQuery, startOfPage } from '../registry/page-query.js';
import type { BrowserLink } from './browser-link.entity.js';
import { BrowserRecognition } from './browser-recognition.js';
import { CustomerDataParticipants, type CustomerTables } from './customer-data-participants.js';
import type { ExportedTable } from './export-page.js';
import type { CandidateCredentials } from './identity-cookies.js';
import {
  LINK_HAS_ENDED,
  LINK_LEADS,
  LINKS_PER_STATEMENT_COUNT,
  type LinkKey,
  raiseVersions,
  removeSecretsOfUnlinked,
  unlink,
} from './links.js';

/** A browser that leads to a customer, in responses to the operator. */
export class BrowserRecord {
  @Text('The id of the browser.', EXAMPLE.browserId)
  id!: string;

  @IsISO8601()
  @ApiProperty('The last day on which the browser used the customer (UTC).', '2026-11-22')
  last_seen_day!: string;
}

/** A page of the browsers that lead to a customer. */
export class BrowserPage {
  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => BrowserRecord)
  @ApiProperty('The browsers of the page, in the order of their ids.')
  browsers!: BrowserRecord[];

  @OptionalText('The value of `cursor` for the next page. Absent on the last page.', EXAMPLE.cursor)
  next_cursor?: string;
}

type FoundLink = NotNull<EntityRow<BrowserLink, 'browser_id' | 'organization_id' | 'group_id' | 'seen_day'>>;

/** @param rest further conditions, the order and the limit */
const linksWith = (rest: string) => `SELECT link.browser_id, link.organization_id, link.group_id, link.seen_day
    FROM browser_customer link
    JOIN customer ON customer.entity_id = link.entity_id
    JOIN browser ON browser.browser_id = link.browser_id
    WHERE link.entity_id = ? AND browser.secret_hash <> '' AND ${LINK_LEADS} ${rest}`;

const FIND_LAST_SEEN = selectStatement<[entityId: string, today: number], FoundLink>(
  linksWith(`ORDER BY link.seen_day DESC, link.browser_id LIMIT ${MAX_PAGE_ENTRIES}`),
);

const FIND_BROWSER = selectStatement<[entityId: string, today: number, browserId: string], FoundLink>(
  linksWith('AND link.browser_id = ?'),
);

/** One more row than a page has, by which the page knows whether another one follows. */
const FIND_AFTER = selectStatement<[entityId: string, today: number, after: string], FoundLink>(
  linksWith(`AND link.browser_id > ? ORDER BY link.browser_id LIMIT ${MAX_PAGE_ENTRIES + 1}`),
);

/** Any of them: all links of a customer are in its organization and group. */
const FIND_NOT_TRANSFERRED = selectStatement<[entityId: string, today: number], FoundLink>(
  linksWith("AND link.origin <> 'transfer' LIMIT 1"),
);

/** The links have an id of their own instead of the ids of their browsers, which lead to other customers too. */
const EXPORTED_TABLES: ExportedTable[] = [
  {
    name: 'browser_customer',
    find: `SELECT browser_id, entity_id, organization_id, group_id, origin, generation, seen_day,
        signed_in_until, root, lineage FROM browser_customer WHERE entity_id = ? ORDER BY browser_id`,
    shown: withLinkId,
  },
  {
    name: 'link_ancestor',
    find: `SELECT browser_id, entity_id, ancestor_id FROM link_ancestor WHERE entity_id = ?
      ORDER BY browser_id, ancestor_id`,
    shown: withLinkId,
  },
];

/** The browsers that lead to a customer. */
@Injectable()
export class CustomerBrowsers implements CustomerTables {
  readonly tables = EXPORTED_TABLES;
  readonly deletedRows = [
    'browser_customer WHERE entity_id = ? AND organization_id IS NOT NULL',
    'link_ancestor WHERE entity_id = ?',
  ];

  constructor(
    private readonly database: Database,
    private readonly audit: Audit,
    private readonly clock: Clock,
    private readonly recognition: BrowserRecognition,
    participants: CustomerDataParticipants,
  ) {
    participants.own.push(this);
  }

  /** The browsers that lead to a customer, the one seen last first, at most 200. */
  async lastSeen(entityId: string): Promise<BrowserRecord[]> {
    return (await this.database.select(FIND_LAST_SEEN, [entityId, this.today()])).map(recordOf);
  }

  /** All browsers that lead to a customer in pages, in the order of their ids. */
  async page(entityId: string, query: PageQuery): Promise<BrowserPage> {
    const list = `identities/${entityId}/browsers`;
    const after = startOfPage(list, query);
    const rows = await this.database.select(FIND_AFTER, [entityId, this.today(), after]);
    const page = rows.slice(0, Number(query.limit ?? MAX_PAGE_ENTRIES));
    const last = page.at(-1);
    const isLast = last === undefined || page.length === rows.length;
    const browsers = page.map(recordOf);
    return isLast ? { browsers } : { browsers, next_cursor: cursorAfter(list, last.browser_id) };
  }

  /**
   * Whether a request may end all links to a customer. It may if one of its own browsers has a link that is not from a
   * transfer, or if no browser has such a link.
   */
  async mayEndLinks(candidates: CandidateCredentials | undefined, entityId: string): Promise<boolean> {
    const [first] = await this.database.select(FIND_NOT_TRANSFERRED, [entityId, this.today()]);
    if (!first) return true;
    const scope = { organizationId: first.organization_id, groupId: first.group_id };
    const known = await this.recognition.all(candidates, scope);
    return known.some(({ customer }) => customer?.entityId === entityId && customer.origin !== 'transfer');
  }

  /**
   * Ends the link from one browser to the customer. Other links, and tokens, are not ended.
   *
   * @returns whether the browser led to the customer
   */
  async end(entityId: string, browserId: string): Promise<boolean> {
    const found = await this.database.select(FIND_BROWSER, [entityId, this.today(), browserId]);
    if (found.length === 0) return false;
    await this.database.transaction(async (manager) => {
      await raiseVersions(manager, 'browser', [browserId]);
      await unlink(manager, [{ browserId, entityId }]);
      await removeSecretsOfUnlinked(manager, [browserId], this.today());
    });
    const details = { browser: browserId };
    this.audit.success('browser.ended', operatorActor(), party('customer', entityId), { details });
    return true;
  }

  /**
   * Ends the links of 1 to 500 customers whose generation of links was raised before, so that they lead nowhere already.
   * A link of a sign-in after `end_sessions` stays. Each step is a transaction. If one fails, a repetition goes on.
   *
   * @param removesSecrets whether a browser that leads to no other customer loses its secret, so that a copy of its
   *   cookies does not lead to its next customer
   */
  async endAll(entityIds: string[], removesSecrets: boolean): Promise<void> {
    const list = valueList(entityIds);
    // the index has the organization, so that unlinked rows are not read
    const findEnded = selectStatement<string[], LinkKey>(
      `SELECT link.browser_id AS browserId, link.entity_id AS entityId FROM browser_customer link
        JOIN customer ON customer.entity_id = link.entity_id
        WHERE link.entity_id IN (${placeholdersFor(list)}) AND link.organization_id IS NOT NULL AND ${LINK_HAS_ENDED}
        LIMIT ${LINKS_PER_STATEMENT_COUNT}`,
    );
    let links: LinkKey[] = [];
    do {
      links = await this.database.select(findEnded, list);
      const browserIds = links.map((link) => link.browserId);
      if (links.length > 0)
        await this.database.transaction(async (manager) => {
          if (removesSecrets) await raiseVersions(manager, 'browser', browserIds);
          await unlink(manager, links);
          if (removesSecrets) await removeSecretsOfUnlinked(manager, browserIds, this.today());
        });
    } while (links.length === LINKS_PER_STATEMENT_COUNT);
  }

  /** Lets the links of erased customers lead nowhere. */
  deleteRows(entityIds: string[]): Promise<void> {
    return this.endAll(entityIds, false);
  }

  private today(): number {
    return dayOf(this.clock.now());
  }
}

function recordOf({ browser_id: id, seen_day }: FoundLink): BrowserRecord {
  return { id, last_seen_day: new Date(seen_day * DAY_MS).toISOString().slice(0, 10) };
}

/** An id of the link instead of the id of its browser, so that exports of two organizations cannot be joined. */
function withLinkId({ browser_id, ...row }: Record<string, SqlValue>, entityId: string): Record<string, SqlValue> {
  return { link_id: sha256(`${browser_id}:${entityId}`), ...row };
}
