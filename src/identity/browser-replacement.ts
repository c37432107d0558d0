import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Customer } from '../customer/customer.js';
import { Customers } from '../customer/customers.js';
import { Audit, party } from '../platform/audit/audit.js';
import { Clock } from '../platform/clock.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { uuidv7 } from '../platform/uuid.js';
import type { LeadingBrowser } from '../session/browser-recognition.js';
import { Browsers, type NewBrowser } from '../session/browsers.js';
import type { DeviceRow } from '../session/session.statements.js';
import { SessionBounds } from '../session/session-bounds.js';
import { Sessions } from '../session/sessions.js';

/** The number of customers of other organizations that a new browser leads to, too. */
const MAX_COPIES = 20;

/** Puts a new browser in the place of an earlier one, by a transfer or a sign-in (protocol §5.6). */
@Injectable()
export class BrowserReplacement {
  constructor(
    private readonly clock: Clock,
    private readonly customers: Customers,
    private readonly browsers: Browsers,
    private readonly sessions: Sessions,
    private readonly bounds: SessionBounds,
    private readonly audit: Audit,
  ) {}

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

  private async copyIn(manager: EntityManager, session: DeviceRow, { browserId }: NewBrowser): Promise<void> {
    const { kind, customer_id: customerId } = session;
    if (!(await this.bounds.makeRoomForCopy(manager, session))) return;
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
}
