import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Customer, CustomerSpace } from '../customer/customer.js';
import { Customers } from '../customer/customers.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Audit, party } from '../platform/audit/audit.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { uuidv7 } from '../platform/uuid.js';
import { LostCodeError, type RedeemableCode, TransferCodes } from '../redemption/transfer-codes.js';
import { BrowserRecognition, isIn, type LeadingBrowser } from '../session/browser-recognition.js';
import { Browsers, type NewBrowser } from '../session/browsers.js';
import { SessionBounds } from '../session/session-bounds.js';
import { SessionLifetime } from '../session/session-lifetime.js';
import { type DeviceRow, Sessions } from '../session/sessions.js';
import { CustomerCreation } from './customer-creation.js';
import type { CandidateCredentials } from './identity-cookies.js';

/** The number of customers of other organizations that a new browser leads to, too. */
const MAX_COPIES = 20;

interface RememberOptions {
  /** The identity cookies of the request. */
  candidates: CandidateCredentials | undefined;
  /** Whether the customer may replace another one of the browser. */
  replace: boolean;
  /** The lifetime of the access token. */
  ttlSeconds: number;
}

/** An organization, or one of its groups. */
interface ForgettingSpace {
  organizationId: string;
  /** If omitted, all groups of the organization. */
  groupId: string | undefined;
}

/** Lets browsers remember and forget customers (protocol §4.13 and §5.6). */
@Injectable()
export class BrowserService {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly customers: Customers,
    private readonly recognition: BrowserRecognition,
    private readonly browsers: Browsers,
    private readonly sessions: Sessions,
    private readonly bounds: SessionBounds,
    private readonly lifetime: SessionLifetime,
    private readonly codes: TransferCodes,
    private readonly creation: CustomerCreation,
    private readonly audit: Audit,
  ) {}

  /**
   * Redeems a transfer token for a new browser. A browser that leads to the customer already stays as it is.
   *
   * @returns the secret of the browser that leads to the customer
   * @throws OAuthError `identity_conflict` if the browser has another customer in the organization and group;
   * `invalid_grant` if the code has ended meanwhile; 429 if the customer has too many devices, or the network created
   * too many browsers
   */
  async remember(code: RedeemableCode, { candidates, replace, ttlSeconds }: RememberOptions): Promise<string> {
    const { entityId, organizationId, groupId, session } = code;
    const [earlier] = await this.recognition.leadingOf(candidates?.pairs ?? []);
    const knownId = earlier?.leading.find((known) => isIn(known, code))?.customer_id;
    if (earlier && knownId === entityId) {
      await this.codes.redeem(code, ttlSeconds);
      return earlier.secret;
    }
    if (knownId !== undefined && !replace) throw OAuthError.identityConflict();
    const copied = this.copiedFrom(earlier, organizationId);
    const browser = this.browsers.create();
    const takeLimit = this.creation.limitOnce();
    const device = {
      ...({ kind: 'transferred', browserId: browser.browserId, organizationId, groupId } as const),
      ...this.lifetime.beginningToday(organizationId, code.hasUser),
    };
    await this.codes.redeemForDevice(code, () =>
      this.database.transaction(async (manager) => {
        const generations = new Map([[entityId, session.gen]]);
        if (!(await this.lockCustomersIn(manager, generations, copied))) throw new LostCodeError();
        if (earlier && !replace) await this.assertNoCustomer(manager, earlier.browserId, code);
        await this.bounds.makeRoom(manager, await this.sessions.allOf(manager, entityId));
        takeLimit();
        await this.insertIn(manager, browser, copied);
        await this.codes.redeemIn(manager, code, device);
      }),
    );
    this.auditLinked(browser.browserId, code, { redemption: code.id });
    return browser.secret;
  }

  /**
   * Lets the browsers of a request no longer lead to the customers of an organization.
   *
   * @returns whether no browser of the request leads to a customer any more
   */
  async forget(candidates: CandidateCredentials | undefined, space: ForgettingSpace): Promise<boolean> {
    const browsers = await this.recognition.leadingOf(candidates?.pairs ?? []);
    let leadsNowhere = true;
    for (const browser of browsers) leadsNowhere = (await this.forgetInBrowser(browser, space)) && leadsNowhere;
    return leadsNowhere;
  }

  /**
   * The earlier browser with the sessions that a new browser in its place copies: those with which it leads to
   * customers of other organizations, the last seen first. `undefined` if there are none.
   */
  copiedFrom(earlier: LeadingBrowser | undefined, organizationId: string): LeadingBrowser | undefined {
    const ofOthers = earlier?.leading.filter((session) => session.organization_id !== organizationId) ?? [];
    return earlier && ofOthers.length > 0 ? { ...earlier, leading: ofOthers.slice(0, MAX_COPIES) } : undefined;
  }

  /**
   * Locks the rows of the customers of a transaction, in the order of their ids: those that it is about, and those
   * whose sessions it copies.
   *
   * @param generations of the customers that it is about
   * @returns false if one of these is gone or has another generation
   */
  async lockCustomersIn(
    manager: EntityManager,
    generations: ReadonlyMap<string, number>,
    copied: LeadingBrowser | undefined,
  ): Promise<boolean> {
    const copiedIds = copied?.leading.map((session) => session.customer_id) ?? [];
    for (const id of [...new Set([...generations.keys(), ...copiedIds])].sort()) {
      const generation = generations.get(id);
      const isLocked = await this.customers.lockIn(manager, id, generation);
      if (!isLocked && generation !== undefined) return false;
    }
    return true;
  }

  /**
   * Inserts a new browser in place of an earlier one, which stays as it is. A copy of a session is a session of its
   * own, as old as the first. A session that has ended meanwhile is not copied: the transaction has locked the row of
   * its customer.
   */
  async insertIn(manager: EntityManager, browser: NewBrowser, copied: LeadingBrowser | undefined): Promise<void> {
    await this.browsers.insertIn(manager, browser);
    if (!copied) return;
    const ids = new Set(copied.leading.map(({ id }) => id));
    const leading = await this.browsers.leadingSessionsIn(manager, [copied.browserId]);
    for (const session of leading.filter(({ id }) => ids.has(id))) await this.copyIn(manager, session, browser);
  }

  /** @param cause what led the browser to the customer: the id of the session of a redemption or of a sign-in */
  auditLinked(
    browserId: string,
    { entityId, organizationId }: Pick<Customer, 'entityId' | 'organizationId'>,
    cause: { redemption: string } | { sign_in: string },
  ): void {
    const details = { browser: browserId, ...cause };
    this.audit.success('browser.linked', party('customer'), party('customer', entityId), { organizationId, details });
  }

  /** @throws OAuthError `identity_conflict` if a parallel request has created a customer for the earlier browser */
  private async assertNoCustomer(manager: EntityManager, browserId: string, space: CustomerSpace): Promise<void> {
    await this.browsers.lockIn(manager, browserId);
    const leading = await this.browsers.leadingSessionsIn(manager, [browserId]);
    if (leading.some((session) => isIn(session, space))) throw OAuthError.identityConflict();
  }

  private async copyIn(manager: EntityManager, session: DeviceRow, { browserId }: NewBrowser): Promise<void> {
    const { kind, customer_id: customerId } = session;
    const all = await this.sessions.allOf(manager, customerId);
    if (!(await this.bounds.makeRoomForCopy(manager, all, session))) return;
    await this.sessions.insertIn(manager, {
      id: uuidv7(this.clock.now()),
      kind,
      customerId,
      browserId,
      organizationId: session.organization_id,
      groupId: session.group_id,
      parentId: session.parent_id,
      parentEpoch: session.parent_epoch,
      depth: session.depth,
      agentSessionId: session.agent_session_id,
      agentEpoch: session.agent_epoch,
      seenDay: session.seen_day,
      signedInDay: session.signed_in_day,
      createdAt: new Date(timeOf(session.created_at)),
      expiresAt: new Date(timeOf(session.expires_at)),
    });
  }

  /**
   * The tokens and devices of the customers stay. A request of this browser that creates a customer, or notes a visit,
   * comes before the transaction or finds neither session nor secret.
   *
   * @returns whether the browser leads to no customer any more
   */
  private async forgetInBrowser({ browserId, leading }: LeadingBrowser, space: ForgettingSpace): Promise<boolean> {
    const { organizationId, groupId } = space;
    const forgotten = leading.filter(
      (session) =>
        session.organization_id === organizationId && (groupId === undefined || session.group_id === groupId),
    );
    if (forgotten.length === 0 && leading.length > 0) return false;
    const leadsNowhere = await this.database.transaction(async (manager) => {
      // the first statements, as in each transaction about sessions; they also note the day for the purge
      for (const id of [...new Set(forgotten.map((session) => session.customer_id))].sort())
        await this.customers.lockIn(manager, id);
      if (!(await this.browsers.lockIn(manager, browserId))) return true;
      await this.browsers.detachIn(manager, { browserId, organizationId, ...(groupId !== undefined && { groupId }) });
      return (await this.browsers.deleteUnusedIn(manager, [browserId])).length > 0;
    });
    if (forgotten.length > 0) this.auditForgotten(browserId, forgotten.length, space);
    return leadsNowhere;
  }

  private auditForgotten(browserId: string, customers: number, { organizationId, groupId }: ForgettingSpace): void {
    const details = { customers, ...(groupId !== undefined && { group: groupId }) };
    const browser = party('browser', browserId);
    this.audit.success('browser.forgotten', party('customer'), browser, { organizationId, details });
  }
}
