import { SNAKE_CASE_NAME } from '../platform/snake-case-name.js';
import type { AuditEventName } from './audit-event.js';

/** The events of the service. The type of the record makes the compiler report a name that is missing. */
const SERVICE_EVENTS: Record<AuditEventName, true> = {
  'identity.created': true,
  'identity.erased': true,
  'identity.linked': true,
  'identity.exported': true,
  'browser.linked': true,
  'browser.forgotten': true,
  'browser.ended': true,
  'sessions.ended': true,
  'token.issued': true,
  'token.revoked': true,
  'transfer_token.issued': true,
  'transfer_token.redeemed': true,
  'transfer_token.replayed': true,
  'authorization_code.issued': true,
  'authorization_code.redeemed': true,
  'authorization_code.replayed': true,
  'refresh_token.issued': true,
  'refresh_token.redeemed': true,
  'refresh_token.replayed': true,
  'sign_in.succeeded': true,
  'sign_in.failed': true,
  'sign_in.limited': true,
  sign_out: true,
  'consent.given': true,
  'admin.authentication_failed': true,
  'registry.changed': true,
  'keys.changed': true,
};

/** Whether an event is one of the service, and not of an extension. */
export const isServiceEvent = (event: string): boolean => Object.hasOwn(SERVICE_EVENTS, event);

/**
 * Asserts that audit events may begin with the name of an extension.
 *
 * @throws Error
 */
export function assertExtensionName(name: string): void {
  if (!SNAKE_CASE_NAME.test(name)) throw new Error(`the extension's name "${name}" must be in snake_case; rename it`);
  if (Object.keys(SERVICE_EVENTS).some((event) => event.split('.', 1)[0] === name))
    throw new Error(`the extension's name "${name}" begins audit events of the service; rename it`);
}

/**
 * Asserts that the name of an event begins with the name of the extension.
 *
 * @throws Error
 */
export function assertEventName(event: string, extensionName: string | undefined): void {
  const [prefix, name = '', ...more] = event.split('.');
  if (prefix !== extensionName || extensionName === undefined)
    throw new Error(`audit event "${event}": must begin with the name of the extension`);
  if (more.length > 0 || !SNAKE_CASE_NAME.test(name))
    throw new Error(`audit event "${event}": must be two names in snake_case, separated by a dot`);
}
