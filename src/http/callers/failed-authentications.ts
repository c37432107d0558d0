import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Audit, party } from '../../platform/audit/audit.js';
import type { AuditParty } from '../../platform/audit/audit-event.js';
import { Clock } from '../../platform/clock.js';
import { ipOf, networkOf } from '../../platform/network.js';
import { requestContext } from '../../platform/request-context/request-context.js';

const WINDOW_MS = 60_000;
/** Further ones share one window, because a flood from many networks must fill neither the memory nor the log. */
const MAX_SOURCES_COUNT = 1_000;
const OTHER_SOURCES = 'other';

/**
 * The first attempt of a network within a minute, or of an operator in it whose role does not suffice, gets an event.
 * Further ones get none, so that a flood cannot displace other audit events. The log has a line of each.
 */
@Injectable()
export class FailedAuthentications {
  private readonly recent: LRUCache<string, true>;

  constructor(
    private readonly audit: Audit,
    clock: Clock,
  ) {
    this.recent = new LRUCache({ max: MAX_SOURCES_COUNT + 1, ttl: WINDOW_MS, ttlResolution: 0, perf: clock });
  }

  /** `reason` contains nothing of the credentials. `actor` is named only if its credentials are valid. */
  record(reason: string, actor: AuditParty = party('operator')): void {
    const { ip, matchedRoute: route } = requestContext.required();
    const source = [networkOf(ip), actor.issuer, actor.id].join(' ');
    this.recent.purgeStale();
    const key = this.recent.has(source) || this.recent.size < MAX_SOURCES_COUNT ? source : OTHER_SOURCES;
    if (this.recent.has(key)) return;
    this.recent.set(key, true);
    this.audit.record({
      event: 'admin.authentication_failed',
      outcome: 'failure',
      actor,
      reason,
      details: { ip: ipOf(ip), route },
    });
  }
}
