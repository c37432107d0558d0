import { Logger } from '@nestjs/common';
import { Counter } from 'prom-client';
import type { Clock } from '../platform/clock.js';
import type { MetricsRegistry } from '../platform/metrics/metrics-registry.js';

/** An unreachable queue fails at each event, and would fill the log. */
const LOG_INTERVAL_MS = 60_000;

/** Counts all failures of audit sinks, and logs at most one per minute. */
export class SinkFailures {
  private readonly logger = new Logger('Audit');
  private readonly failures: Counter;
  private loggedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    metrics: MetricsRegistry,
    private readonly clock: Clock,
  ) {
    this.failures = new Counter({
      name: 'cas_audit_sink_failures_total',
      help: 'Audit events that a sink failed to write.',
      registers: [metrics],
    });
  }

  /** The log gets only the class of the error, because its message may contain credentials of the sink. */
  record(event: string, error: unknown): void {
    this.failures.inc();
    const nowMs = this.clock.now();
    if (Math.abs(nowMs - this.loggedAtMs) < LOG_INTERVAL_MS) return; // the clock may have been set back
    this.loggedAtMs = nowMs;
    const kind = error instanceof Error ? error.name : typeof error;
    this.logger.error(`an audit sink failed at ${event}: ${kind}. Further failures are logged once a minute`);
  }
}
