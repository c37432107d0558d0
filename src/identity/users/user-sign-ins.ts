import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { type Customer, spaceOf } from '../../customer/customer.js';
import type { CustomerRow } from '../../customer/customers.js';
import { Clock } from '../../platform/clock.js';
import { uuidv7 } from '../../platform/uuid.js';
import {
  BrowserRecognition,
  isIn,
  type LeadingBrowser,
  type LeadingSession,
} from '../../session/browser-recognition.js';
import { Browsers } from '../../session/browsers.js';
import type { StoredSession } from '../../session/session.statements.js';
import { SessionBounds } from '../../session/session-bounds.js';
import { SessionLifetime } from '../../session/session-lifetime.js';
import { Sessions } from '../../session/sessions.js';
import { BrowserReplacement } from '../browser-replacement.js';
import type { CandidateCredentials } from '../identity-cookies.js';

/** A browser that signs a user in. */
export interface SigningBrowser extends LeadingBrowser {
  /** Its session in the organization, without a group. */
  session: LeadingSession | undefined;
}

/** The browser in which a user has signed in, and its session. */
export interface SignedInBrowser {
  secret: string;
  sessionId: string;
  epoch: number;
  /** The id of the new browser; `undefined` if a pair was renewed. */
  createdId: string | undefined;
}

/** Signs users in in browsers (protocol §5.6). */
@Injectable()
export class UserSignIns {
  constructor(
    private readonly recognition: BrowserRecognition,
    private readonly browsers: Browsers,
    private readonly replacement: BrowserReplacement,
    private readonly sessions: Sessions,
    private readonly bounds: SessionBounds,
    private readonly lifetime: SessionLifetime,
    private readonly clock: Clock,
  ) {}

  /** The browser of a request that signs a user in. */
  async browserOf(
    credentials: CandidateCredentials | undefined,
    organizationId: string,
  ): Promise<SigningBrowser | undefined> {
    const [browser] = await this.recognition.leadingOf(credentials?.pairs ?? []);
    const space = spaceOf(organizationId);
    return browser && { ...browser, session: browser.leading.find((session) => isIn(session, space)) };
  }

  /** Whether the browser still leads to a customer with the session with which it was recognized. */
  async leadsIn(manager: EntityManager, browser: SigningBrowser | undefined, entityId: string): Promise<boolean> {
    const sessions = await this.sessions.allOf(manager, entityId);
    return sessions.some(({ id, browser_id }) => id === browser?.session?.id && browser_id === browser.browserId);
  }

  /** Renews the sign-in of the browser, or creates a new browser (protocol §5.6). */
  async signInIn(
    manager: EntityManager,
    { entityId, organizationId }: Pick<Customer, 'entityId' | 'organizationId'>,
    browser: SigningBrowser | undefined,
    copied: LeadingBrowser | undefined,
  ): Promise<SignedInBrowser> {
    const end = this.lifetime.beginningToday(organizationId, true);
    const earlier = browser && (await this.earlierSignIn(manager, entityId, browser));
    if (browser && earlier) {
      await this.sessions.renewIn(manager, earlier.id, end);
      return { secret: browser.secret, sessionId: earlier.id, epoch: earlier.epoch, createdId: undefined };
    }
    const created = this.browsers.create();
    const sessionId = uuidv7(this.clock.now());
    await this.bounds.makeRoomForSignIn(manager, entityId);
    await this.replacement.insertIn(manager, created, copied);
    const { browserId, secret } = created;
    const session = { id: sessionId, kind: 'sign_in', customerId: entityId, browserId } as const;
    await this.sessions.insertIn(manager, { ...session, ...spaceOf(organizationId), ...end });
    return { secret, sessionId, epoch: 0, createdId: browserId };
  }

  private async earlierSignIn(
    manager: EntityManager,
    entityId: string,
    { session }: SigningBrowser,
  ): Promise<StoredSession | undefined> {
    if (session?.kind !== 'sign_in') return undefined;
    return (await this.sessions.allOf(manager, entityId)).find(({ id }) => id === session.id);
  }
}

/** Whether the browser leads to the customer by a sign-in. */
export function isSignedInTo(browser: SigningBrowser | undefined, { entity_id }: CustomerRow): boolean {
  return browser?.session?.kind === 'sign_in' && browser.session.customer_id === entity_id;
}
