import type { Audit } from './audit.js';
import type { ExtensionAuditEvent } from './audit-event.js';
import { assertEventName } from './event-names.js';

/**
 * Records the audit events of an extension. `Prefix` is the name of the extension, so that only names of its own events
 * compile: `ExtensionAudit<'device_approval'>`.
 */
export class ExtensionAudit<Prefix extends string> {
  constructor(
    private readonly audit: Audit,
    private readonly extensionName: string | undefined,
  ) {}

  /**
   * Sends an event to all sinks. Call it after the action. The event gets the request's id, grant, client and
   * organization, unless it has its own.
   *
   * @throws Error if the name of the event does not begin with the name of the extension
   */
  record(event: ExtensionAuditEvent<Prefix>): void {
    assertEventName(event.event, this.extensionName);
    this.audit.send(event);
  }
}
