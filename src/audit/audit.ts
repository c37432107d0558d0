import { requestContext } from '../platform/request-context/request-context.js';
import type { AuditDetails, AuditEntry, AuditEvent, AuditSink } from './audit-event.js';
import type { SinkFailures } from './sink-failures.js';

/**
 * Sends audit events to all sinks. Callers record an event after its action, so that the log lists only what has
 * happened. Each event gets fields of its request.
 */
export class Audit {
  constructor(
    private readonly sinks: AuditSink[],
    private readonly failures: SinkFailures,
  ) {}

  /** Adds the request's id, grant, client and organization from the request context, unless the event has its own. */
  record(event: AuditEvent): void {
    this.send(event);
  }

  /** Sends an event whose name the caller has checked. */
  send(event: AuditDetails & { event: string }): void {
    const entry = withRequest(event);
    for (const sink of this.sinks) this.write(sink, entry);
  }

  /** No request waits for a sink. An error of a sink neither ends the process nor changes a response. */
  private write(sink: AuditSink, entry: AuditEntry): void {
    const onError = (error: unknown) => this.failures.record(entry.event, error);
    try {
      const pending = sink.write(entry);
      if (pending) Promise.resolve(pending).catch(onError);
    } catch (error) {
      onError(error);
    }
  }
}

function withRequest(event: AuditDetails & { event: string }): AuditEntry {
  const request = requestContext.current();
  if (!request) return event;
  const { id: requestId, grant, clientId, organizationId } = request;
  return { grant, clientId, organizationId, ...event, requestId };
}
