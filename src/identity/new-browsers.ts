import type { EntityManager } from 'typeorm';
import { type Audit, party } from '../audit/audit.js';
import { dayOf } from '../platform/clock.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { BrowserLink, KnownBrowser } from './browser-link.entity.js';
import type { RecognizedBrowser } from './browser-recognition.js';
import type { Customer } from './customer.js';
import { secretCookieOf } from './identity-cookies.js';
import { insertLinks, leadingLinksOf, lockBrowser, newLink, raiseVersions, replaceOldestCopies } from './links.js';

/** The numbers of further customers that a new browser leads to. The rest stay with the earlier browser. */
const MAX_FURTHER_CUSTOMERS = 200;
const MAX_FURTHER_CUSTOMERS_PER_ORGANIZATION = 20;

/** A browser to be created. Nothing is added to the earlier browser, which sent the request. */
export interface NewBrowser {
  browserId: string;
  secretHash: string;
  /** The value of the cookie with the browser's id and secret. */
  cookie: string;
  today: number;
  earlier: RecognizedBrowser | undefined;
}

export function newBrowser(earlier: RecognizedBrowser | undefined, now: number): NewBrowser {
  const [browserId, secret] = [uuidv7(now), randomSecret('hex')];
  const cookie = secretCookieOf(browserId, secret);
  return { browserId, secretHash: sha256(secret), cookie, today: dayOf(now), earlier };
}

/** The links of the browser that sent the request. */
interface EarlierLinks {
  leading: BrowserLink[];
  /** Those that a new browser copies. */
  copies: BrowserLink[];
}

/**
 * The links with which the earlier browser leads to customers, and those of them that a new browser copies. Changes the
 * rows of their customers, then the row of the browser. If two transactions change the links of one browser or
 * customer, the second therefore reads what the first has changed, and copies no link that has ended.
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
  const raised = new Set<string>();
  const raiseNew = async (links: BrowserLink[]) => {
    const ids = links.map(({ entityId }) => entityId).filter((id) => !raised.has(id));
    await raiseVersions(manager, 'customer', ids);
    for (const id of ids) raised.add(id);
    return ids.length > 0;
  };
  await raiseNew(choose(await read()));
  if (!(await lockBrowser(manager, earlier))) return { leading: [], copies: [] };
  let leading = await read();
  // a parallel request has added or ended links; the transaction is repeated after a deadlock
  while (await raiseNew(choose(leading))) leading = await read();
  return { leading, copies: choose(leading) };
}

/** Inserts a browser with copies of links of the earlier browser, and with a link of its own. */
export async function insertBrowser(
  manager: EntityManager,
  { browserId, secretHash }: NewBrowser,
  copies: BrowserLink[],
  own: BrowserLink | undefined,
): Promise<void> {
  await manager.insert(KnownBrowser, { browserId, secretHash, version: 0 });
  const copied = copies.map((link) => ({ ...link, browserId }));
  await insertLinks(manager, own ? [own, ...copied] : copied);
  if (copies.length > 0) await replaceOldestCopies(manager, browserId);
}

/** @param cause what gave the link: the id of a redemption or of a sign-in */
export function auditLinked(
  audit: Audit,
  browserId: string,
  { entityId, organizationId }: Pick<Customer, 'entityId' | 'organizationId'>,
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

/** The browser in which a user has signed in. */
export interface SignedInBrowser {
  cookie: string;
  /** The id of the new browser; `undefined` if a pair was renewed. */
  createdId: string | undefined;
}

/**
 * The links with which the browser of the request leads to customers, and those that a new browser copies: of other
 * organizations, unless the browser is signed in already. The transaction has changed the rows of the customers.
 *
 * @param knownId the customer of a known user
 */
export function linksAtSignIn(
  manager: EntityManager,
  browser: NewBrowser,
  organizationId: string,
  knownId: string | undefined,
): Promise<EarlierLinks> {
  return linksOfEarlier(manager, browser, (leading) =>
    isSignedIn(leading, knownId)
      ? []
      : lastSeenOfEach(leading.filter((link) => link.organizationId !== organizationId)),
  );
}

/**
 * Renews the sign-in of the earlier browser, or inserts the new browser (protocol §5.6). The transaction has changed
 * the row of the customer before reading the generation. A parallel `end_sessions` therefore either came before both,
 * or ends the link and the token.
 *
 * @param links the result of `linksAtSignIn`
 * @param signedInUntil the last day of the sign-in
 */
export async function storeSignIn(
  manager: EntityManager,
  browser: NewBrowser,
  { entityId, organizationId, generation }: Pick<Customer, 'entityId' | 'organizationId' | 'generation'>,
  { leading, copies }: EarlierLinks,
  signedInUntil: number,
): Promise<SignedInBrowser> {
  const { browserId, today: seenDay, earlier } = browser;
  if (earlier && isSignedIn(leading, entityId)) {
    await manager.update(BrowserLink, { browserId: earlier.browserId, entityId }, { seenDay, signedInUntil });
    return { cookie: earlier.cookie, createdId: undefined };
  }
  const content = { origin: 'sign-in', generation, seenDay, signedInUntil } as const;
  await insertBrowser(manager, browser, copies, newLink(browserId, { entityId, organizationId, groupId: '' }, content));
  return { cookie: browser.cookie, createdId: browserId };
}

function isSignedIn(leading: BrowserLink[], customerId: string | undefined): boolean {
  return leading.some(({ entityId, origin }) => entityId === customerId && origin === 'sign-in');
}
