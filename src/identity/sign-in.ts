import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock, dayOf } from '../platform/clock.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { writeStatement } from '../platform/database/statement.js';
import { BrowserCreation, cookieOf, type EarlierLinks, lastSeenOfEach, newBrowser } from './browser-creation.js';
import type { BrowserLink } from './browser-link.entity.js';
import { BrowserRecognition, type RecognizedBrowser } from './browser-recognition.js';
import type { CandidateCredentials } from './identity-cookies.js';
import { LinkLifetime } from './link-lifetime.js';
import { newLink } from './links.js';

const RENEW = writeStatement<[seenDay: number, signedInUntil: number, browserId: string, entityId: string]>(
  'UPDATE browser_customer SET seen_day = ?, signed_in_until = ? WHERE browser_id = ? AND entity_id = ?',
);

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

/** Lets browsers lead to the customers of the users who sign in (protocol §5.6). */
@Injectable()
export class UserSignIns {
  constructor(
    private readonly clock: Clock,
    private readonly browsers: BrowserRecognition,
    private readonly creation: BrowserCreation,
    private readonly lifetime: LinkLifetime,
  ) {}

  /** The browser of the request, with its customer in the organization, without a group. */
  find(candidates: CandidateCredentials | undefined, organizationId: string): Promise<RecognizedBrowser | undefined> {
    return this.browsers.find(candidates, { organizationId, groupId: '' });
  }

  /**
   * The links with which the browser of the request leads to customers, and those that a new browser copies: of other
   * organizations, unless the browser is signed in already. The transaction has changed the rows of the customers.
   *
   * @param knownId the customer of a known user
   */
  linksOf(
    manager: EntityManager,
    earlier: RecognizedBrowser | undefined,
    organizationId: string,
    knownId: string | undefined,
  ): Promise<EarlierLinks> {
    return this.creation.linksOfEarlier(manager, { earlier, today: dayOf(this.clock.now()) }, (leading) =>
      isSignedIn(leading, knownId)
        ? []
        : lastSeenOfEach(leading.filter((link) => link.organizationId !== organizationId)),
    );
  }

  /**
   * Renews the sign-in of the browser, or creates a new browser. The transaction has changed the row of the customer
   * before it has read the generation. So `end_sessions` at the same time either has preceded both, or ends the link and
   * the token.
   *
   * @param earlier the browser of the request
   * @param links the result of `linksOf`
   */
  async store(
    manager: EntityManager,
    earlier: RecognizedBrowser | undefined,
    { entityId, organizationId, generation }: UsersCustomer,
    { leading, copies }: EarlierLinks,
  ): Promise<SignedInBrowser> {
    const browser = newBrowser(earlier, this.clock.now());
    const { browserId, today } = browser;
    const signedInUntil = this.lifetime.signedInUntil(organizationId, today);
    if (earlier && isSignedIn(leading, entityId)) {
      await writeIn(manager, RENEW, [today, signedInUntil, earlier.browserId, entityId]);
      return { secret: earlier.secret, createdId: undefined };
    }
    const content = { origin: 'sign-in', generation, seenDay: today, signedInUntil } as const;
    const own = newLink(browserId, { entityId, organizationId, groupId: '' }, content);
    await this.creation.create(manager, browser, copies, own);
    return { secret: cookieOf(browser), createdId: browserId };
  }
}

function isSignedIn(leading: BrowserLink[], customerId: string | undefined): boolean {
  return leading.some(({ entityId, origin }) => entityId === customerId && origin === 'sign-in');
}
