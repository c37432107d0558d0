import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Denylist } from '../access-token/denylist.js';
import { Audit, party } from '../audit/audit.js';
import { dayOf } from '../platform/clock.js';
import { insertRowsIn, selectIn } from '../platform/database/in-transaction.js';
import { insertStatement, selectStatement } from '../platform/database/statement.js';
import { placeholdersFor, valueList } from '../platform/database/value-list.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { KnownBrowser } from './browser-link.entity.js';
import type { RecognizedBrowser } from './browser-recognition.js';
import { secretCookieOf } from './identity-cookies.js';
import {
  entityIdsByBeginning,
  insertLinks,
  type LinkKey,
  type LinkRow,
  linksOf,
  lockBrowser,
  raiseVersions,
  unlink,
} from './links.js';

/** The numbers of further customers that a new browser leads to. The rest stay with the earlier browser. */
const MAX_FURTHER_CUSTOMERS = 200;
const MAX_FURTHER_CUSTOMERS_PER_ORGANIZATION = 20;
/** The number of browsers that have a copy of one link. */
const MAX_COPIES = 100;

const INSERT_BROWSER = insertStatement({
  into: KnownBrowser,
  columns: ['browser_id', 'secret_hash', 'version'],
});

/** A browser to be created. Nothing is added to the earlier browser, which sent the request. */
export interface NewBrowser {
  browserId: string;
  secret: string;
  today: number;
  earlier: RecognizedBrowser | undefined;
}

export function newBrowser(earlier: RecognizedBrowser | undefined, now: number): NewBrowser {
  return { browserId: uuidv7(now), secret: randomSecret('hex'), today: dayOf(now), earlier };
}

/** The value of the cookie with the secret of a new browser. */
export function cookieOf({ browserId, secret }: NewBrowser): string {
  return secretCookieOf(browserId, secret);
}

/** Creates browsers that lead to customers of an earlier browser (protocol §5.6). */
@Injectable()
export class BrowserCreation {
  constructor(
    private readonly denylist: Denylist,
    private readonly audit: Audit,
  ) {}

  /**
   * The links with which the earlier browser leads to customers. This method changes the row of the browser first. Of two
   * transactions that change the links of one browser, the second one reads what the first one has changed.
   */
  async linksOfEarlier(
    manager: EntityManager,
    earlier: RecognizedBrowser | undefined,
    today: number,
  ): Promise<LinkRow[]> {
    if (!earlier) return [];
    if (!(await lockBrowser(manager, earlier))) return [];
    return this.leadingLinks(manager, earlier.browserId, today);
  }

  /**
   * Creates a browser with copies of links of the earlier browser, and with a link of its own.
   *
   * @param chosen links of `linksOfEarlier`. Those that have ended since are not copied
   * @param ownLink returns the browser's own link; `undefined` if one of the copies takes its place
   */
  async create(
    manager: EntityManager,
    browser: NewBrowser,
    chosen: LinkRow[],
    ownLink: (copies: LinkRow[]) => Promise<LinkRow | undefined>,
  ): Promise<void> {
    const { browserId, secret } = browser;
    const copies = await this.stillLeading(manager, browser, chosen);
    const own = await ownLink(copies);
    await insertRowsIn(manager, INSERT_BROWSER, [[browserId, sha256(secret), 0]]);
    const copied = copies.map((link) => ({ ...link, browser_id: browserId }));
    await insertLinks(manager, own ? [own, ...copied] : copied);
    await this.replaceOldestCopies(manager, copies);
  }

  /** @param cause what gave the link: the id of a redemption or of a sign-in */
  auditLinked(
    browserId: string,
    { entityId, organizationId }: { entityId: string; organizationId: string },
    cause: { redemption: string } | { sign_in: string },
  ): void {
    const details = { browser: browserId, ...cause };
    this.audit.success('browser.linked', party('customer'), party('customer', entityId), { organizationId, details });
  }

  /**
   * Those of the links that still lead to their customers after the rows of the customers were changed. `forget` and the
   * purge change these rows too, so that a link that they end is not copied.
   */
  private async stillLeading(
    manager: EntityManager,
    { earlier, today }: NewBrowser,
    chosen: LinkRow[],
  ): Promise<LinkRow[]> {
    if (!earlier || chosen.length === 0) return [];
    const ids = chosen.map(({ entity_id }) => entity_id);
    await raiseVersions(manager, 'customer', ids);
    const leading = await this.leadingLinks(manager, earlier.browserId, today);
    const current = new Set(leading.map(({ entity_id }) => entity_id));
    return chosen.filter(({ entity_id }) => current.has(entity_id));
  }

  private async leadingLinks(manager: EntityManager, browserId: string, today: number): Promise<LinkRow[]> {
    const links = (await linksOf(manager, [browserId], today)).filter(({ leads }) => leads !== 0);
    return this.denylist.withoutEndedAgents(links, manager);
  }

  private async replaceOldestCopies(manager: EntityManager, copies: LinkRow[]): Promise<void> {
    for (const [beganIn, ids] of entityIdsByBeginning(copies)) {
      const list = valueList(ids);
      const find = selectStatement<string[], LinkKey>(
        `SELECT entity_id, browser_id FROM browser_customer
          WHERE entity_id IN (${placeholdersFor(list)}) AND began_in = ? AND browser_id <> began_in
            AND organization_id IS NOT NULL ORDER BY entity_id, browser_id DESC`,
      );
      const found = await selectIn(manager, find, [...list, beganIn]);
      // the links of one customer follow each other, the newest copy first
      await unlink(
        manager,
        found.filter(({ entity_id }, index) => found[index - MAX_COPIES]?.entity_id === entity_id),
      );
    }
  }
}

/** The link seen last of each organization, then the second of each, and so on. So no organization displaces another. */
export function lastSeenOfEach(links: LinkRow[]): LinkRow[] {
  const byOrganization = new Map<string, LinkRow[]>();
  for (const link of [...links].sort((one, other) => other.seen_day - one.seen_day)) {
    const ofOrganization = byOrganization.get(link.organization_id) ?? [];
    byOrganization.set(link.organization_id, [...ofOrganization, link]);
  }
  const selected: LinkRow[] = [];
  for (let turn = 0; turn < MAX_FURTHER_CUSTOMERS_PER_ORGANIZATION; turn++)
    for (const ofOrganization of byOrganization.values()) {
      const link = ofOrganization[turn];
      if (link && selected.length < MAX_FURTHER_CUSTOMERS) selected.push(link);
    }
  return selected;
}
