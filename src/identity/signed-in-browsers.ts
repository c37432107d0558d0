import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit, party } from '../audit/audit.js';
import { Clock, dayOf } from '../platform/clock.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { writeStatement } from '../platform/database/statement.js';
import type { CandidateCredentials } from './identity-cookies.js';
import { LinkLifetime } from './link-lifetime.js';
import type { LinkRow } from './links.js';
import { lastSeenOfEach, NewBrowser, NewBrowsers } from './new-browsers.js';
import { type RecognizedBrowser, RecognizedBrowsers } from './recognized-browsers.js';

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
export class SignedInBrowsers {
  constructor(
    private readonly clock: Clock,
    private readonly browsers: RecognizedBrowsers,
    private readonly newBrowsers: NewBrowsers,
    private readonly lifetime: LinkLifetime,
    private readonly audit: Audit,
  ) {}

  /** The browser of the request, with its customer in the organization, without a group. */
  find(candidates: CandidateCredentials | undefined, organizationId: string): Promise<RecognizedBrowser | undefined> {
    return this.browsers.find(candidates, { organizationId, groupId: '' });
  }

  /** The links with which the browser of the request leads to customers. Changes the row of the browser first. */
  linksOf(manager: EntityManager, browser: RecognizedBrowser | undefined): Promise<LinkRow[]> {
    return this.newBrowsers.linksOfEarlier(manager, browser, dayOf(this.clock.now()));
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
    const browser = new NewBrowser(earlier, this.clock.now());
    const { browserId, today } = browser;
    const signedInUntil = this.lifetime.signedInUntil(organizationId, today);
    const isSignedIn = leading.some(({ entity_id, origin }) => entity_id === entityId && origin === 'sign-in');
    if (earlier && isSignedIn) {
      await writeIn(manager, RENEW, [today, signedInUntil, earlier.browserId, entityId]);
      return { secret: earlier.secret, createdId: undefined };
    }
    const ofOthers = lastSeenOfEach(leading.filter((link) => link.organization_id !== organizationId));
    const copies = await this.newBrowsers.stillLeading(manager, browser, ofOthers);
    const link: LinkRow = {
      ...{ browser_id: browserId, entity_id: entityId, organization_id: organizationId, group_id: '' },
      ...{ origin: 'sign-in', began_in: browserId, generation, seen_day: today, signed_in_until: signedInUntil },
      ...{ root: null, lineage: null },
    };
    await this.newBrowsers.insert(manager, browser, copies, link);
    return { secret: browser.secretCookie, createdId: browserId };
  }

  auditLinked(browserId: string, { entityId: id, organizationId }: Omit<UsersCustomer, 'generation'>, signIn: string) {
    const details = { browser: browserId, sign_in: signIn };
    this.audit.success('browser.linked', party('customer'), party('customer', id), { organizationId, details });
  }
}
