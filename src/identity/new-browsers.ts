import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Customers } from '../customer/customers.js';
import { Clock } from '../platform/clock.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { uuidv7 } from '../platform/uuid.js';
import { Browsers, type LeadingBrowser, type NewBrowser, type SessionRow } from '../session/browsers.js';
import { Devices } from '../session/devices.js';
import { Sessions } from '../session/sessions.js';

/** The number of customers of other organizations that a new browser leads to, too. */
const MAX_COPIES_COUNT = 20;

/** The sessions that a new browser copies, as read before the transaction. */
export interface Copies {
  /** The browser that sent the request. It stays as it is. */
  earlierId: string;
  sessions: SessionRow[];
}

/** Creates a browser in place of an earlier one, which stays as it is (protocol §5.6). */
@Injectable()
export class NewBrowsers {
  constructor(
    private readonly clock: Clock,
    private readonly browsers: Browsers,
    private readonly customers: Customers,
    private readonly sessions: Sessions,
    private readonly devices: Devices,
  ) {}

  /** The sessions with which the earlier browser leads to customers of other organizations, the last seen first. */
  copiesOf(earlier: LeadingBrowser | undefined, organizationId: string): Copies | undefined {
    if (!earlier) return undefined;
    const ofOthers = earlier.leading.filter((session) => session.organization_id !== organizationId);
    if (ofOthers.length === 0) return undefined;
    return { earlierId: earlier.browserId, sessions: ofOthers.slice(0, MAX_COPIES_COUNT) };
  }

  /**
   * Writes the rows of the customers of a transaction, in the order of their ids: those that it is about, and those whose
   * sessions it copies.
   *
   * @param generations of the customers that it is about
   * @returns false if one of these is gone or has another generation
   */
  async writeCustomersIn(
    manager: EntityManager,
    generations: ReadonlyMap<string, number>,
    copies: Copies | undefined,
  ): Promise<boolean> {
    const copied = copies?.sessions.map((session) => session.customer_id) ?? [];
    const ids = [...new Set([...generations.keys(), ...copied])].sort();
    for (const id of ids) {
      const generation = generations.get(id);
      const isWritten = await this.customers.writeIn(manager, id, generation);
      if (!isWritten && generation !== undefined) return false;
    }
    return true;
  }

  /**
   * Inserts the new browser with copies of sessions of the earlier one. Each copy is a session of its own, as old as the first. A session that
   * has ended meanwhile is not copied: the transaction has written the row of its customer.
   */
  async insertIn(manager: EntityManager, browser: NewBrowser, copies: Copies | undefined): Promise<void> {
    await this.browsers.insertIn(manager, browser);
    if (!copies) return;
    const ids = new Set(copies.sessions.map(({ id }) => id));
    const current = await this.browsers.leadingSessionsIn(manager, copies.earlierId);
    for (const session of current.filter(({ id }) => ids.has(id))) await this.copyIn(manager, session, browser);
  }

  private async copyIn(manager: EntityManager, session: SessionRow, { browserId }: NewBrowser): Promise<void> {
    const { kind, customer_id: customerId } = session;
    const all = await this.sessions.allOf(manager, customerId);
    if (!(await this.devices.makeRoomForCopy(manager, all, session))) return;
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
