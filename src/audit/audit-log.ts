import type { Logger } from 'pino';
import type { AuditEntry, AuditSink } from './audit-event.js';

/** Writes audit events to the log with `"stream":"audit"`. LOG_LEVEL does not suppress them. */
export class AuditLog implements AuditSink {
  private readonly logger: Logger;

  constructor(logger: Logger) {
    this.logger = logger.child({ stream: 'audit' }, { level: 'info' });
  }

  write({
    event,
    outcome,
    actor,
    subject,
    organizationId,
    clientId,
    grant,
    reason,
    details,
    requestId,
  }: AuditEntry): void {
    const about = {
      organization_id: organizationId,
      client_id: clientId,
      grant,
      reason,
      details,
      request_id: requestId,
    };
    this.logger.info({ event, outcome, actor, subject, ...about });
  }
}
