import { Injectable } from '@nestjs/common';
import { Clock, dayOf } from '../platform/clock.js';
import { idleDaysOf } from '../registry/organization.entity.js';
import { Registry } from '../registry/registry.js';

export const DEFAULT_IDLE_DAYS = 731;
/** How long a browser leads to a user's customer after a sign-in (protocol §4.7). */
const DEFAULT_SIGN_IN_DAYS = 30;
/** The grant with which users sign in. Its settings in the organization have `sign_in_days`. */
const SIGN_IN_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

const LAST_DAY_IF_IDLE = `link.seen_day + COALESCE(${idleDaysOf('link.organization_id')}, ${DEFAULT_IDLE_DAYS})`;

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

  /** The last day of a sign-in. Its link stores the day, so that a later setting does not revive a link that has ended. */
  signedInUntil(organizationId: string, today: number): number {
    const settings = this.registry.organization(organizationId)?.grants[SIGN_IN_GRANT];
    return today + ((settings?.sign_in_days as number | undefined) ?? DEFAULT_SIGN_IN_DAYS);
  }
}
