import type { EntityManager } from 'typeorm';
import { type Audit, party } from '../audit/audit.js';
import { dayOf } from '../platform/clock.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { type BrowserLink, KnownBrowser } from './browser-link.entity.js';
import type { RecognizedBrowser } from './browser-recognition.js';
import { secretCookieOf } from './identity-cookies.js';
import { insertLinks, leadingLinksOf, lockBrowser, raiseVersions, replaceOldestCopies } from './links.js';

/** The numbers of further customers that a new browser leads to. The rest stay with the earlier browser. */
const MAX_FURTHER_CUSTOMERS = 200;
const MAX_FURTHER_CUSTOMERS_PER_ORGANIZATION = 20;

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

/** The links of the browser that sent the request. */
export interface EarlierLinks {
  leading: BrowserLink[];
  /** Those that a new browser copies. */
  copies: BrowserLink[];
}

/**
 * The links with which the earlier browser leads to customers, and those of them that a new browser copies. Changes the
 * rows of their customers, then the row of the browser. Of two transactions that change the links of one browser or
 * customer, the second one reads what the first one has changed, and a link that has ended is not copied.
 *
 * @param choose returns the links to copy
 */
export async function linksOfEarlier(
  manager: EntityManager,
  { earlier, today }: Pick<NewBrowser, 'earlier' | 'today'>,
  choose: (leading: BrowserLink[]) => BrowserLink[],
): Promise<EarlierLinks> {
  if (!earlier) return { leading: [], copies: [] };
  const read = () => leadingLinksOf(manager, earlier.browserId, today);
  const ids = choose(await read()).map(({ entityId }) => entityId);
  await raiseVersions(manager, 'customer', ids);
  const leading = (await lockBrowser(manager, earlier)) ? await read() : [];
  return { leading, copies: choose(leading).filter(({ entityId }) => ids.includes(entityId)) };
}

/** Inserts a browser with copies of links of the earlier browser, and with a link of its own. */
export async function insertBrowser(
  manager: EntityManager,
  { browserId, secret }: NewBrowser,
  copies: BrowserLink[],
  own: BrowserLink | undefined,
): Promise<void> {
  await manager.insert(KnownBrowser, { browserId, secretHash: sha256(secret), version: 0 });
  const copied = copies.map((link) => ({ ...link, browserId }));
  await insertLinks(manager, own ? [own, ...copied] : copied);
  if (copies.length > 0) await replaceOldestCopies(manager, browserId);
}

/** @param cause what gave the link: the id of a redemption or of a sign-in */
export function auditLinked(
  audit: Audit,
  browserId: string,
  { entityId, organizationId }: { entityId: string; organizationId: string },
  cause: { redemption: string } | { sign_in: string },
): void {
  const details = { browser: browserId, ...cause };
  audit.success('browser.linked', party('customer'), party('customer', entityId), { organizationId, details });
}

/** The link seen last of each organization, then the second of each, and so on. So no organization displaces another. */
export function lastSeenOfEach(links: BrowserLink[]): BrowserLink[] {
  const byOrganization = new Map<string | null, BrowserLink[]>();
  for (const link of [...links].sort((one, other) => other.seenDay - one.seenDay)) {
    const ofOrganization = byOrganization.get(link.organizationId) ?? [];
    byOrganization.set(link.organizationId, [...ofOrganization, link]);
  }
  const selected: BrowserLink[] = [];
  for (let turn = 0; turn < MAX_FURTHER_CUSTOMERS_PER_ORGANIZATION; turn++)
    for (const ofOrganization of byOrganization.values()) {
      const link = ofOrganization[turn];
      if (link && selected.length < MAX_FURTHER_CUSTOMERS) selected.push(link);
    }
  return selected;
}
