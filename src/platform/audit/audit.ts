import { Logger } from '@nestjs/common';
import type { Logger as PinoLogger } from 'pino';
import type { Counter } from 'prom-client';
import type { Clock } from '../clock.js';
import type { MetricsRegistry } from '../metrics.js';
import { requestContext } from '../request-context/request-context.js';
import type { AuditDetails, AuditEntry, AuditEvent, AuditEventName, AuditParty, AuditSink } from './audit-event.js';

/** An unreachable queue fails at each event, and would fill the log. */
const LOG_INTERVAL_MS = 60_000;

/** Callers record an event after its action, so that the log lists only what has happened. */
export class Audit {
  private readonly logger = new Logger('Audit');
  private readonly sinkFailures: Counter;
  private loggedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly sinks: AuditSink[],
    metrics: MetricsRegistry,
    private readonly clock: Clock,
  ) {
    this.sinkFailures = metrics.counted('cas_audit_sink_failures_total', 'Audit events that a sink failed to write.');
  }

  /** Adds the request's id, grant, client and organization, unless the event has its own. */
  record(event: AuditEvent): void {
    const entry = withRequest(event);
    for (const sink of this.sinks) this.write(sink, entry);
  }

  success(event: AuditEventName, actor: AuditParty, subject: AuditParty, more: Partial<AuditDetails> = {}): void {
    this.record({ event, outcome: 'success', actor, subject, ...more });
  }

  /** No request waits for a sink. An error of a sink neither ends the process nor changes a response. */
  private write(sink: AuditSink, entry: AuditEntry): void {
    const onError = (error: unknown) => this.countFailure(entry.event, error);
    try {
      const pending = sink.write(entry);
      if (pending) Promise.resolve(pending).catch(onError);
    } catch (error) {
      onError(error);
    }
  }

  /** The log gets only the class of the error, because its message may contain credentials of the sink. */
  private countFailure(event: string, error: unknown): void {
    this.sinkFailures.inc();
    const nowMs = this.clock.now();
    if (Math.abs(nowMs - this.loggedAtMs) < LOG_INTERVAL_MS) return; // the clock may have been set back
    this.loggedAtMs = nowMs;
    const kind = error instanceof Error ? error.name : typeof error;
    this.logger.error(`an audit sink failed at ${event}: ${kind}. Further failures are logged once a minute`);
  }
}

function withRequest(event: AuditDetails & { event: string }): AuditEntry {
  const request = requestContext.current();
  if (!request) return event;
  const { id: requestId, grant, clientId, organizationId } = request;
  return { grant, clientId, organizationId, ...event, requestId };
}

export function party(kind: AuditParty['kind'], id?: string): AuditParty {
  return { kind, ...(id !== undefined && { id }) };
}

/** Writes audit events to the log with `"stream":"audit"`. LOG_LEVEL does not suppress them. */
export class AuditLog implements AuditSink {
  private readonly logger: PinoLogger;

  /** @param omitsCreatedEntries whether to omit the entries that a registry file creates, as of the demo registry */
  constructor(
    logger: PinoLogger,
    private readonly omitsCreatedEntries = false,
  ) {
    this.logger = logger.child({ stream: 'audit' }, { level: 'info' });
  }

  write(entry: AuditEntry): void {
    const { event, outcome, actor, subject, grant, reason, details } = entry;
    if (this.omitsCreatedEntries && actor.kind === 'service' && details?.change === 'created') return;
    const ids = { organization_id: entry.organizationId, client_id: entry.clientId };
    this.logger.info({
      ...{ event, outcome, actor, subject, ...ids, grant, reason, details },
      request_id: entry.requestId,
    });
  }
}
