import { Logger } from '@nestjs/common';
import { requestContext } from '../platform/request-context/request-context.js';
import type { AuditEntry, AuditEvent, AuditSink } from './audit-event.js';

/**
 * Sends audit events to all sinks. Callers record an event after its action, so that the log lists only what has
 * happened. Each event gets fields of its request.
 */
export class Audit {
  private readonly logger = new Logger(Audit.name);

  constructor(private readonly sinks: AuditSink[]) {}

  /** Adds the request's id, grant, client and organization from the request context, unless the event has its own. */
  record(event: AuditEvent): void {
    const entry = withRequest(event);
    for (const sink of this.sinks) {
      try {
        sink.write(entry);
      } catch (error) {
        this.logger.error(`an audit sink failed at ${event.event}: ${(error as Error).name}`);
      }
    }
  }
}

function withRequest(event: AuditEvent): AuditEntry {
  const request = requestContext.current();
  if (!request) return event;
  const { id: requestId, grant, clientId, organizationId } = request;
  return { grant, clientId, organizationId, ...event, requestId };
}
