import type { EntityManager } from 'typeorm';
import { BrowserLink } from './browser-link.entity.js';
import { newLink } from './links.js';
import {
  cookieOf,
  type EarlierLinks,
  insertBrowser,
  lastSeenOfEach,
  linksOfEarlier,
  type NewBrowser,
} from './new-browsers.js';

/** The customer of the user who signs in. */
interface UsersCustomer {
  entityId: string;
  organizationId: string;
  generation: number;
}

/** The browser in which a user has signed in. */
export interface SignedInBrowser {
  /** The value of the cookie with the secret. */
  secret: string;
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
 * Renews the sign-in of the earlier browser, or inserts the new browser (protocol §5.6). The transaction has changed the
 * row of the customer before it has read the generation. So `end_sessions` at the same time either has preceded both, or
 * ends the link and the token.
 *
 * @param links the result of `linksAtSignIn`
 * @param signedInUntil the last day of the sign-in
 */
export async function storeSignIn(
  manager: EntityManager,
  browser: NewBrowser,
  { entityId, organizationId, generation }: UsersCustomer,
  { leading, copies }: EarlierLinks,
  signedInUntil: number,
): Promise<SignedInBrowser> {
  const { browserId, today: seenDay, earlier } = browser;
  if (earlier && isSignedIn(leading, entityId)) {
    await manager.update(BrowserLink, { browserId: earlier.browserId, entityId }, { seenDay, signedInUntil });
    return { secret: earlier.secret, createdId: undefined };
  }
  const content = { origin: 'sign-in', generation, seenDay, signedInUntil } as const;
  await insertBrowser(manager, browser, copies, newLink(browserId, { entityId, organizationId, groupId: '' }, content));
  return { secret: cookieOf(browser), createdId: browserId };
}

function isSignedIn(leading: BrowserLink[], customerId: string | undefined): boolean {
  return leading.some(({ entityId, origin }) => entityId === customerId && origin === 'sign-in');
}
