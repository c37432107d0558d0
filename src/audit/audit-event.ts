/** What happened, in names that stay (docs/observability.md). */
export type AuditEventName =
  | 'identity.created'
  | 'identity.erased'
  | 'identity.linked'
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

/** The kinds of parties. A new registry resource adds its kind by declaration merging, in the file that describes it. */
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

/** The actor or the subject of an event: a kind and an id, never a name, an email or a secret. */
export interface AuditParty {
  kind: keyof AuditPartyKinds;
  id?: string | undefined;
}

/** Something that changed who may do what, or tried to. */
export interface AuditEvent {
  event: AuditEventName;
  outcome: 'success' | 'failure';
  actor: AuditParty;
  subject?: AuditParty;
  organizationId?: string | undefined;
  clientId?: string | undefined;
  /** The grant, or the way, by which a token was asked for. */
  grant?: string | undefined;
  /** Of a failure: why, for the operator alone. */
  reason?: string;
  details?: Record<string, string | number | boolean | string[]>;
}

/** An event as it is handed to a sink. */
export interface AuditEntry extends AuditEvent {
  /** The request it happened in; left out where it happened in none. */
  requestId?: string;
}

/** Where audit events go. The log is one; who needs another, such as a queue, gives `startService` one. */
export interface AuditSink {
  /** Must neither wait nor throw: the event has happened already. */
  write(entry: AuditEntry): void;
}
