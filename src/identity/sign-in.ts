import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock, dayOf } from '../platform/clock.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { writeStatement } from '../platform/database/statement.js';
import { BrowserCreation, cookieOf, lastSeenOfEach, newBrowser } from './browser-creation.js';
import { BrowserRecognition, type RecognizedBrowser } from './browser-recognition.js';
import type { CandidateCredentials } from './identity-cookies.js';
import { LinkLifetime } from './link-lifetime.js';
import { type LinkRow, newLink } from './links.js';

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
export class SignIn {
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

  /** The links with which the browser of the request leads to customers. Changes the row of the browser first. */
  linksOf(manager: EntityManager, browser: RecognizedBrowser | undefined): Promise<LinkRow[]> {
    return this.creation.linksOfEarlier(manager, browser, dayOf(this.clock.now()));
  }

  /**
   * Renews the sign-in of the browser, or creates a new browser. The transaction has changed the row of the customer
   * before it has read the generation. So `end_sessions` at the same time either has preceded both, or ends the link and
   * the token.
   *
   * @param earlier the browser of the request
   * @param leading the result of `linksOf`
   */
  async store(
    manager: EntityManager,
    earlier: RecognizedBrowser | undefined,
    { entityId, organizationId, generation }: UsersCustomer,
    leading: LinkRow[],
  ): Promise<SignedInBrowser> {
    const browser = newBrowser(earlier, this.clock.now());
    const { browserId, today } = browser;
    const signedInUntil = this.lifetime.signedInUntil(organizationId, today);
    const isSignedIn = leading.some(({ entity_id, origin }) => entity_id === entityId && origin === 'sign-in');
    if (earlier && isSignedIn) {
      await writeIn(manager, RENEW, [today, signedInUntil, earlier.browserId, entityId]);
      return { secret: earlier.secret, createdId: undefined };
    }
    const ofOthers = lastSeenOfEach(leading.filter((link) => link.organization_id !== organizationId));
    const customer = { entityId, organizationId, groupId: '' };
    const content = { origin: 'sign-in', generation, seen_day: today, signed_in_until: signedInUntil } as const;
    await this.creation.create(manager, browser, ofOthers, async () => newLink(browserId, customer, content));
    return { secret: cookieOf(browser), createdId: browserId };
  }
}
