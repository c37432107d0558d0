import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Audit, party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { Clock } from '../platform/clock.js';
import { ipOf, networkOf } from '../platform/network.js';
import { requestContext } from '../platform/request-context/request-context.js';

const WINDOW_MS = 60_000;
const CHECK_INTERVAL_MS = 1_000;
/** Further networks share one window, because a flood from many networks must fill neither the memory nor the log. */
const MAX_NETWORKS = 1_000;
const OTHER_NETWORKS = 'other';

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
 * The first attempt of a network gets an event immediately. Further attempts within a minute get one together at its
 * end, so that a flood cannot displace other audit events.
 */
@Injectable()
export class FailedAuthentications implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly networks = new Map<string, Attempts>();
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
    for (const network of this.networks.keys()) this.end(network);
  }

  /** `reason` contains nothing of the credentials. `actor` is named only if its credentials are valid. */
  record(reason: string, actor: AuditParty = party('operator')): void {
    const { ip, matchedRoute } = requestContext.required();
    const network = networkOf(ip);
    const attempt = { reason, ip: ipOf(ip), route: matchedRoute, actor };
    const key = this.networks.has(network) || this.networks.size < MAX_NETWORKS ? network : OTHER_NETWORKS;
    const attempts = this.networks.get(key);
    if (attempts) {
      attempts.unreported++;
      attempts.last = attempt;
      return;
    }
    this.networks.set(key, { startedAt: this.clock.now(), unreported: 0, last: attempt });
    this.report(attempt, 1);
  }

  private reportEnded(): void {
    const now = this.clock.now();
    for (const [network, { startedAt }] of this.networks) {
      if (Math.abs(now - startedAt) >= WINDOW_MS) this.end(network); // the clock may have been set back
    }
  }

  private end(network: string): void {
    const attempts = this.networks.get(network);
    this.networks.delete(network);
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
