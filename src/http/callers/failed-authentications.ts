import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Audit, party } from '../../platform/audit/audit.js';
import type { AuditParty } from '../../platform/audit/audit-event.js';
import { Clock } from '../../platform/clock.js';
import { ipOf, networkOf } from '../../platform/network.js';
import { requestContext } from '../../platform/request-context/request-context.js';

const WINDOW_MS = 60_000;
const CHECK_INTERVAL_MS = 1_000;
/** Further ones share one window, because a flood from many networks must fill neither the memory nor the log. */
const MAX_SOURCES_COUNT = 1_000;
const OTHER_SOURCES = 'other';

interface Attempts {
  startedAt: number;
  unreported: number;
  last: Attempt;
}

interface Attempt {
  reason: string;
  ip: string;
  route: string;
  actor: AuditParty;
}

/**
 * The first attempt of a network, or of an operator in it whose role does not suffice, gets an event immediately. Further
 * attempts within a minute get one together at its end, so that a flood cannot displace other audit events.
 */
@Injectable()
export class FailedAuthentications implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly sources = new Map<string, Attempts>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    // started outside of a request, because an event of several requests has no request id
    this.timer = setInterval(() => this.reportEnded(), CHECK_INTERVAL_MS).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
    for (const source of this.sources.keys()) this.end(source);
  }

  /** `reason` contains nothing of the credentials. `actor` is named only if its credentials are valid. */
  record(reason: string, actor: AuditParty = party('operator')): void {
    const { ip, matchedRoute } = requestContext.required();
    const source = [networkOf(ip), actor.issuer, actor.id].join(' ');
    const attempt = { reason, ip: ipOf(ip), route: matchedRoute, actor };
    const key = this.sources.has(source) || this.sources.size < MAX_SOURCES_COUNT ? source : OTHER_SOURCES;
    const attempts = this.sources.get(key);
    if (attempts) {
      attempts.unreported++;
      attempts.last = attempt;
      return;
    }
    this.sources.set(key, { startedAt: this.clock.now(), unreported: 0, last: attempt });
    this.report(attempt, 1);
  }

  private reportEnded(): void {
    const now = this.clock.now();
    for (const [source, { startedAt }] of this.sources) {
      if (Math.abs(now - startedAt) >= WINDOW_MS) this.end(source); // the clock may have been set back
    }
  }

  private end(source: string): void {
    const attempts = this.sources.get(source);
    this.sources.delete(source);
    if (attempts && attempts.unreported > 0) this.report(attempts.last, attempts.unreported);
  }

  private report({ reason, ip, route, actor }: Attempt, attempts: number): void {
    this.audit.record({
      event: 'admin.authentication_failed',
      outcome: 'failure',
      actor,
      reason,
      details: { ip, route, attempts },
    });
  }
}
