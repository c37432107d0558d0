/** Names of audit events. They are part of the service's interface and do not change (docs/observability.md). */
export type AuditEventName =
  | 'identity.created'
  | 'identity.erased'
  | 'identity.linked'
  | 'browser.linked'
  | 'browser.forgotten'
  | 'browser.ended'
  | 'token.issued'
  | 'token.revoked'
  | 'transfer_token.issued'
  | 'transfer_token.redeemed'
  | 'transfer_token.replayed'
  | 'authorization_code.issued'
  | 'authorization_code.redeemed'
  | 'authorization_code.replayed'
  | 'refresh_token.redeemed'
  | 'refresh_token.replayed'
  | 'sign_in.succeeded'
  | 'sign_in.failed'
  | 'sign_in.limited'
  | 'sign_out'
  | 'consent.given'
  | 'admin.authentication_failed'
  | 'registry.changed'
  | 'keys.changed';

/** The kinds of actors and subjects. A new registry resource adds its kind by declaration merging, in its own file. */
export interface AuditPartyKinds {
  customer: true;
  agent: true;
  client: true;
  operator: true;
  browser: true;
  service: true;
  resource_server: true;
  organization: true;
  key: true;
  token: true;
}

/** The actor or subject of an event. The id is never a person's name, an email or a secret. */
export interface AuditParty {
  kind: keyof AuditPartyKinds;
  /** For an operator, the name of the admin token; absent for a value of ADMIN_TOKEN. */
  id?: string | undefined;
}

/** A change of access rights, or an attempt to change them. */
export interface AuditEvent {
  event: AuditEventName;
  outcome: 'success' | 'failure';
  actor: AuditParty;
  subject?: AuditParty;
  organizationId?: string | undefined;
  clientId?: string | undefined;
  /** The grant or the flow by which the client requested a token. */
  grant?: string | undefined;
  /** Why the action failed; only the operator sees it. */
  reason?: string;
  details?: Record<string, string | number | boolean | string[]>;
}

/** An event with its request, as a sink gets it. */
export interface AuditEntry extends AuditEvent {
  /** The request that caused the event; absent if no request did. */
  requestId?: string;
}

/**
 * A destination of audit events. The log is the default; a caller of `startService` may pass another, such as a queue.
 */
export interface AuditSink {
  /** Must not block or throw, because the action has already happened. */
  write(entry: AuditEntry): void;
}
