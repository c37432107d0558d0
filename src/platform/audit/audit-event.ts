/** Names of audit events. They are part of the service's interface and do not change (docs/observability.md). */
export type AuditEventName =
  | 'identity.created'
  | 'identity.erased'
  | 'identity.linked'
  | 'identity.exported'
  | 'browser.linked'
  | 'browser.forgotten'
  | 'browser.ended'
  | 'sessions.ended'
  | 'token.issued'
  | 'token.revoked'
  | 'transfer_token.issued'
  | 'transfer_token.redeemed'
  | 'transfer_token.replayed'
  | 'authorization_code.issued'
  | 'authorization_code.redeemed'
  | 'authorization_code.replayed'
  | 'refresh_token.issued'
  | 'refresh_token.redeemed'
  | 'refresh_token.replayed'
  | 'sign_in.succeeded'
  | 'sign_in.failed'
  | 'sign_in.limited'
  | 'sign_out'
  | 'consent.given'
  | 'admin.authentication_failed'
  | 'registry.changed'
  | 'organization.erased'
  | 'keys.changed';

/** The kinds of actors and subjects. */
type AuditPartyKind =
  | 'customer'
  | 'agent'
  | 'client'
  | 'operator'
  | 'browser'
  | 'service'
  | 'resource_server'
  | 'organization'
  | 'key'
  | 'token';

/** The actor or subject of an event. The id is never a person's name, an email or a secret. */
export interface AuditParty {
  kind: AuditPartyKind;
  /** For an operator, the name of the admin token or the `sub` of a token; absent if the authentication failed. */
  id?: string | undefined;
  /** The issuer of the token of an agent or operator, if it is another one. The id counts for this issuer alone. */
  issuer?: string | undefined;
}

/** What all audit events have: a change of access rights, or an attempt to change them. */
export interface AuditDetails {
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

/** An event of the service. */
export interface AuditEvent extends AuditDetails {
  event: AuditEventName;
}

/** An event with its request, as a sink gets it. */
export interface AuditEntry extends AuditEvent {
  /** The request that caused the event; absent if no request did. */
  requestId?: string;
}

/** A destination of audit events. It must not block or throw, because the action has already happened. */
export interface AuditSink {
  write(entry: AuditEntry): void;
}
