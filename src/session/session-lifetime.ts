import { Injectable } from '@nestjs/common';
import { Clock, DAY_MS, dayOf } from '../platform/clock.js';
import { MAX_IDLE_DAYS } from '../registry/organization.entity.js';
import { Registry } from '../registry/registry.js';

/** How long a browser leads to a user's customer after a sign-in (protocol §4.7). */
const DEFAULT_SIGN_IN_DAYS = 30;
/** The grant with which users sign in. Its settings in the organization have `sign_in_days`. */
const SIGN_IN_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** The days of a browser's session. */
interface SessionDays {
  seenDay: number;
  /** `null` for a session that needs no sign-in. */
  signedInDay: number | null;
}

/** The columns of a session of a browser that say how long it leads to the customer. */
export type BrowserSessionEnd = SessionDays & { expiresAt: Date };

/**
 * Computes how long a browser leads to its customer, from the settings of the organization (protocol §4.7 and §5.9).
 */
@Injectable()
export class SessionLifetime {
  constructor(
    private readonly registry: Registry,
    private readonly clock: Clock,
  ) {}

  /** For a session that begins now, or is renewed by a sign-in. */
  beginningToday(organizationId: string, isSignIn: boolean): BrowserSessionEnd {
    const seenDay = dayOf(this.clock.now());
    const days = { seenDay, signedInDay: isSignIn ? seenDay : null };
    return { ...days, expiresAt: this.expiryOf(organizationId, days) };
  }

  /** When a browser stops leading to its customer, if it is not seen again: the end of the last day. */
  expiryOf(organizationId: string, { seenDay, signedInDay }: SessionDays): Date {
    const organization = this.registry.organizationSettings(organizationId);
    const idleDay = seenDay + (organization?.idleDays ?? MAX_IDLE_DAYS);
    const signInDays = organization?.grants[SIGN_IN_GRANT]?.sign_in_days as number | undefined;
    const lastDay =
      signedInDay === null ? idleDay : Math.min(idleDay, signedInDay + (signInDays ?? DEFAULT_SIGN_IN_DAYS));
    return new Date((lastDay + 1) * DAY_MS);
  }
}
