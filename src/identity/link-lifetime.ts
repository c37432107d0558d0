import { Injectable } from '@nestjs/common';
import { IsNull, Not } from 'typeorm';
import { Clock, DAY_MS, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { uuidv7 } from '../platform/uuid.js';
import { idleDaysOf, Organization } from '../registry/organization.entity.js';
import { Registry } from '../registry/registry.js';

const DEFAULT_IDLE_DAYS = 731;
/** How long a browser leads to a user's customer after a sign-in (protocol §4.7). */
const DEFAULT_SIGN_IN_DAYS = 30;
/** The grant with which users sign in. Its settings in the organization have `sign_in_days`. */
const SIGN_IN_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** Covers requests under way at midnight, and clocks that differ. */
const CLOCK_MARGIN_MS = 300_000;

/** The last day on which a customer or link is not idle, for statements about many. @param day on which it was used last */
export const lastDayIfIdle = (day: string, organizationId: string) =>
  `${day} + COALESCE(${idleDaysOf(organizationId)}, ${DEFAULT_IDLE_DAYS})`;

const LAST_DAY_IF_IDLE = lastDayIfIdle('link.seen_day', 'link.organization_id');

/** The last day on which a link leads to its customer, for statements about many links: the rule of `LinkLifetime` in SQL. */
export const LAST_DAY_OF_LINK = `CASE WHEN link.signed_in_until < ${LAST_DAY_IF_IDLE} THEN link.signed_in_until
  ELSE ${LAST_DAY_IF_IDLE} END`;

/**
 * Decides whether the time of a link has passed: the browser was not seen for too long (protocol §5.9), or the user
 * signed in too long ago (protocol §4.7).
 */
@Injectable()
export class LinkLifetime {
  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly clock: Clock,
  ) {}

  /**
   * @param seenDay the last day on which the browser was seen in the organization and group
   * @param signedInUntil the last day of the sign-in; `null` for a link that needs no sign-in
   */
  hasPassed(organizationId: string, seenDay: number, signedInUntil: number | null): boolean {
    const today = dayOf(this.clock.now());
    const idleDays = this.registry.organization(organizationId)?.idleDays ?? DEFAULT_IDLE_DAYS;
    return today > seenDay + idleDays || (signedInUntil !== null && today > signedInUntil);
  }

  /** For a purge: its day, and the first id of customers and browsers that are too young to be idle. */
  async idlePass(purgeTime: Date): Promise<{ now: number; today: number; createdBefore: string }> {
    const now = purgeTime.getTime() - CLOCK_MARGIN_MS;
    const options = { where: { idleDays: Not(IsNull()) }, order: { idleDays: 'ASC' }, take: 1 } as const;
    const [shortest] = await this.database.read(Organization, options);
    const idleDays = shortest?.idleDays ?? DEFAULT_IDLE_DAYS;
    return { now, today: dayOf(now), createdBefore: uuidv7(now - idleDays * DAY_MS) };
  }

  /** The last day of a sign-in. Its link stores the day, so that a later setting does not revive a link that has ended. */
  signedInUntil(organizationId: string, today: number): number {
    const settings = this.registry.organization(organizationId)?.grants[SIGN_IN_GRANT];
    return today + ((settings?.sign_in_days as number | undefined) ?? DEFAULT_SIGN_IN_DAYS);
  }
}
