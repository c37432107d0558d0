import { Injectable } from '@nestjs/common';
import { Clock, dayOf } from '../platform/clock.js';
import { Registry } from '../registry/registry.js';

export const DEFAULT_IDLE_DAYS = 731;
/** How long a browser leads to a user's customer after a sign-in (protocol §4.7). */
const DEFAULT_SIGN_IN_DAYS = 30;
/** The grant with which users sign in. Its settings in the organization have `sign_in_days`. */
const SIGN_IN_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

const settingOfLink = (value: string, defaultDays: number) =>
  `COALESCE((SELECT ${value} FROM organization WHERE organization.id = link.organization_id), ${defaultDays})`;
const LAST_DAY_IF_IDLE = `link.seen_day + ${settingOfLink('idle_days', DEFAULT_IDLE_DAYS)}`;
const SIGN_IN_DAYS = `JSON_EXTRACT(organization.grants, '$."${SIGN_IN_GRANT}".sign_in_days')`;
const LAST_DAY_OF_SIGN_IN = `link.signed_in_day + ${settingOfLink(SIGN_IN_DAYS, DEFAULT_SIGN_IN_DAYS)}`;

/** The last day on which a link leads to its customer, for statements about many links: the rule of `IdleRule` in SQL. */
export const LAST_DAY_OF_LINK = `CASE WHEN ${LAST_DAY_OF_SIGN_IN} < ${LAST_DAY_IF_IDLE} THEN ${LAST_DAY_OF_SIGN_IN}
  ELSE ${LAST_DAY_IF_IDLE} END`;

/**
 * Decides whether the time of a link has passed: the browser was not seen for too long (protocol §5.9), or the user
 * signed in too long ago (protocol §4.7).
 */
@Injectable()
export class IdleRule {
  constructor(
    private readonly registry: Registry,
    private readonly clock: Clock,
  ) {}

  /**
   * @param seenDay the last day on which the browser was seen in the organization and group
   * @param signedInDay the day of the last sign-in; `null` for a link that needs no sign-in
   */
  hasPassed(organizationId: string, seenDay: number, signedInDay: number | null): boolean {
    const organization = this.registry.organization(organizationId);
    const today = dayOf(this.clock.now());
    if (seenDay < today - (organization?.idleDays ?? DEFAULT_IDLE_DAYS)) return true;
    const signInDays = organization?.grants[SIGN_IN_GRANT]?.sign_in_days as number | undefined;
    return signedInDay !== null && signedInDay < today - (signInDays ?? DEFAULT_SIGN_IN_DAYS);
  }
}
