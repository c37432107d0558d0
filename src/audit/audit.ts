import { Logger } from '@nestjs/common';
import { currentRequest } from '../platform/http/current-request.js';
import type { AuditEvent, AuditSink } from './audit-event.js';

/** Tells every sink of what happened. An event is recorded after the fact, so what is recorded is true. */
export class Audit {
  private readonly logger = new Logger(Audit.name);

  constructor(private readonly sinks: AuditSink[]) {}

  record(event: AuditEvent): void {
    const request = currentRequest();
    const entry = request ? { ...event, requestId: request.id } : event;
    for (const sink of this.sinks) {
      try {
        sink.write(entry);
      } catch (error) {
        this.logger.error(`an audit sink failed at ${event.event}: ${(error as Error).name}`);
      }
    }
  }
}
