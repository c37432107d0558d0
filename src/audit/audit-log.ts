import type { Logger } from 'pino';
import type { AuditEntry, AuditSink } from './audit-event.js';

/** Writes audit events to the log with `"stream":"audit"`. LOG_LEVEL does not suppress them. */
export class AuditLog implements AuditSink {
  private readonly logger: Logger;

  constructor(logger: Logger) {
    this.logger = logger.child({ stream: 'audit' }, { level: 'info' });
  }

  write({ event, outcome, actor, subject, ...rest }: AuditEntry): void {
    const {
      organizationId: organization_id,
      clientId: client_id,
      requestId: request_id,
      grant,
      reason,
      details,
    } = rest;
    this.logger.info({
      event,
      outcome,
      actor,
      subject,
      organization_id,
      client_id,
      grant,
      reason,
      details,
      request_id,
    });
  }
}
