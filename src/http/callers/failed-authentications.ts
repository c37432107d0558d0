import { Injectable } from '@nestjs/common';
import { Audit, party } from '../../platform/audit/audit.js';
import type { AuditParty } from '../../platform/audit/audit-event.js';
import { Clock } from '../../platform/clock.js';
import { ipOf, networkOf } from '../../platform/network.js';
import { requestContext } from '../../platform/request-context/request-context.js';

const WINDOW_MS = 60_000;
/** Further ones share one window, because a flood from many networks must fill neither the memory nor the log. */
const MAX_SOURCES = 1_000;
const OTHER_SOURCES = 'other';

/**
 * The first attempt of a network within a minute, or of an operator in it whose role does not suffice, gets an event.
 * Further ones get none, so that a flood cannot displace other audit events. The log has a line of each.
 */
@Injectable()
export class FailedAuthentications {
  /** When each source got its event, the earliest first. */
  private readonly recent = new Map<string, number>();

  constructor(
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  /** `reason` contains nothing of the credentials. `actor` is named only if its credentials are valid. */
  record(reason: string, actor: AuditParty = party('operator')): void {
    const { ip, matchedRoute: route } = requestContext.required();
    const now = this.clock.now();
    this.dropEnded(now);
    const source = [networkOf(ip), actor.issuer, actor.id].join(' ');
    const key = this.recent.has(source) || this.recent.size < MAX_SOURCES ? source : OTHER_SOURCES;
    if (this.recent.has(key)) return;
    this.recent.set(key, now);
    this.audit.record({
      event: 'admin.authentication_failed',
      outcome: 'failure',
      actor,
      reason,
      details: { ip: ipOf(ip), route },
    });
  }

  private dropEnded(now: number): void {
    for (const [source, startedAt] of this.recent) {
      if (Math.abs(now - startedAt) < WINDOW_MS) return; // the clock may have been set back
      this.recent.delete(source);
    }
  }
}
