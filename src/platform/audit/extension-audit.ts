import { SNAKE_CASE_NAME } from '../validation/text-rules.js';
import type { Audit } from './audit.js';
import { AUDIT_EVENT_NAMES, type AuditEvent, type ExtensionAuditEvent } from './audit-event.js';

/**
 * Records the audit events of an extension. `Prefix` is the name of the extension, so that only names of its own events
 * compile: `ExtensionAudit<'device_approval'>`.
 */
export class ExtensionAudit<Prefix extends string> {
  /** @internal */
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
    this.audit.record(event as unknown as AuditEvent);
  }
}

/** @throws Error if no audit event may begin with this name */
export function assertExtensionName(name: string): void {
  if (!SNAKE_CASE_NAME.test(name)) throw new Error(`the extension's name "${name}" must be in snake_case; rename it`);
  if (AUDIT_EVENT_NAMES.some((event) => event.split('.', 1)[0] === name))
    throw new Error(`the extension's name "${name}" begins audit events of the service; rename it`);
}

function assertEventName(event: string, extensionName: string | undefined): void {
  const [prefix, name = '', ...rest] = event.split('.');
  if (prefix !== extensionName || extensionName === undefined)
    throw new Error(`audit event "${event}": must begin with the name of the extension`);
  if (rest.length > 0 || !SNAKE_CASE_NAME.test(name))
    throw new Error(`audit event "${event}": must be two names in snake_case, separated by a dot`);
}
