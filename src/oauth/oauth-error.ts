import type { RequestContext } from '../platform/request-context/request-context.js';
import { type ErrorBody, type ErrorCode, MALFORMED, POLLING_CODES } from './error-body.js';

const NOT_AUTHORIZED = 'The client is not authorized to request a token using this method';
/** Of a grant that declares no hint of its own, and of routes. */
const INVALID_GRANT_HINT = 'proof: unknown, expired, used, ended, or of another client';
const LACKS_SCOPE = 'The access token does not have the scope that this request needs';

interface Details {
  /** Sent to the caller: names the parameter and the rule, never a value. */
  hint?: string;
  reason?: string;
  cause?: unknown;
  headers?: Record<string, string>;
}

/** What is known about the request of an error, for its log line. */
export type RequestFacts = Partial<Pick<RequestContext, 'clientId' | 'organizationId' | 'token' | 'resourceServerId'>>;

/**
 * An error response (RFC 6749 §5.2, RFC 6750 §3.1). Only the factories below create one, so that each error has one
 * status and one text. `hint` is sent to the caller; `reason` and `cause` are only logged.
 */
export class OAuthError extends Error {
  readonly hint: string | undefined;
  readonly reason: string | undefined;
  readonly headers: Record<string, string>;
  /** @internal */
  facts: RequestFacts = {};

  private constructor(
    readonly code: ErrorCode,
    readonly status: number,
    readonly description: string,
    { hint, reason, cause, headers = {} }: Details = {},
  ) {
    super(reason ?? hint ?? code, { cause });
    this.hint = hint;
    this.reason = reason;
    this.headers = headers;
  }

  /** Names what is known about the request, for the log. @internal */
  about(facts: RequestFacts): this {
    this.facts = facts;
    return this;
  }

  /** A parameter is missing, repeated, malformed or unknown: 400. `hint` names the parameter and the rule. */
  static invalidRequest(hint: string, reason?: string | undefined): OAuthError {
    return new OAuthError('invalid_request', 400, MALFORMED, { hint, ...(reason && { reason }) });
  }

  /** The body is not JSON: 400. @internal */
  static invalidMessage(): OAuthError {
    return new OAuthError('invalid_request', 400, 'Invalid message', { hint: 'body: not JSON' });
  }

  /** The client sent bytes that are not an HTTP request, or sent them too slowly: 400, 408 or 431. @internal */
  static brokenRequest({ status, reason }: { status: number; reason?: string }): OAuthError {
    const hint = 'HTTP: malformed or incomplete request';
    return new OAuthError('invalid_request', status, MALFORMED, { hint, ...(reason && { reason }) });
  }

  /** The bearer token is invalid: 401. `reason` is only logged. `hint` is about the form of the text alone. */
  static invalidToken(reason: string, hint?: string): OAuthError {
    const headers = { 'WWW-Authenticate': 'Bearer error="invalid_token"' };
    return new OAuthError('invalid_token', 401, 'Invalid access token', { reason, headers, ...(hint && { hint }) });
  }

  /** The request has no `Authorization`: 401. The header then names no error (RFC 6750 §3.1). @internal */
  static missingToken(): OAuthError {
    const details = { hint: 'Authorization: missing; send Bearer and the token', reason: 'no Authorization header' };
    return new OAuthError('invalid_token', 401, 'Invalid access token', {
      ...details,
      headers: { 'WWW-Authenticate': 'Bearer' },
    });
  }

  /**
   * A code is unknown, expired, used, of another client, or fails PKCE: 400. `reason` is free text that is only logged.
   */
  static invalidGrant(reason: string): OAuthError {
    return new OAuthError('invalid_grant', 400, NOT_AUTHORIZED, { reason, hint: INVALID_GRANT_HINT });
  }

  /** The same error with the constant hint of a grant, which says nothing about the request. @internal */
  withHint(hint: string): OAuthError {
    const { code, status, description, headers, reason, cause, facts } = this;
    const details = { headers, hint, cause, ...(reason && { reason }) };
    return new OAuthError(code, status, description, details).about(facts);
  }

  /** The client or the organization may not use this grant: 400. */
  static unauthorizedClient(hint: string): OAuthError {
    return new OAuthError('unauthorized_client', 400, NOT_AUTHORIZED, { hint });
  }

  /** The request, the client and the agent have no scope in common: 400. @internal */
  static invalidScope(): OAuthError {
    const hint = 'scope: the request, the client and the agent have no scope in common';
    return new OAuthError('invalid_scope', 400, 'The requested scope cannot be granted', { hint });
  }

  /** The user has not decided yet; the client polls again: 400. Only for a grant that declares `polling`. */
  static authorizationPending(): OAuthError {
    return new OAuthError('authorization_pending', 400, 'The authorization request is still pending');
  }

  /** As `authorizationPending`, and the client must add 5 s to its interval: 400. */
  static slowDown(): OAuthError {
    return new OAuthError('slow_down', 400, 'The authorization request is still pending; poll less often');
  }

  /** The request of the client has expired: 400. Only for a grant that declares `polling`. */
  static expiredToken(): OAuthError {
    return new OAuthError('expired_token', 400, 'The authorization request has expired');
  }

  /** The user has denied the request of the client: 400. Only for a grant that declares `polling`. */
  static accessDenied(): OAuthError {
    return new OAuthError('access_denied', 400, 'The authorization request was denied');
  }

  /** @internal */
  static unsupportedGrantType(): OAuthError {
    const description = 'The authorization grant type is not supported by this service';
    return new OAuthError('unsupported_grant_type', 400, description, { hint: 'grant_type: unknown' });
  }

  /** The bearer token is valid but lacks `scope`: 403. */
  static insufficientScope(scope: string): OAuthError {
    const headers = { 'WWW-Authenticate': `Bearer error="insufficient_scope", scope="${scope}"` };
    return new OAuthError('insufficient_scope', 403, LACKS_SCOPE, { hint: `scope: ${scope} is required`, headers });
  }

  /** The admin token is valid, but its role does not suffice: 403. @internal */
  static insufficientRole(role: string): OAuthError {
    const headers = { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' };
    return new OAuthError('insufficient_scope', 403, LACKS_SCOPE, { hint: `role: ${role} is required`, headers });
  }

  /** The entry of the resource server lacks a field: 403. @internal */
  static insufficientEntry(field: string): OAuthError {
    const headers = { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' };
    const hint = `${field}: required in the entry of the resource server`;
    return new OAuthError('insufficient_scope', 403, LACKS_SCOPE, { hint, headers });
  }

  /** The client's credentials are wrong or missing: 401. `reason` is only logged. */
  static invalidClient(reason: string): OAuthError {
    const headers = { 'WWW-Authenticate': 'Basic realm="token"' };
    return new OAuthError('invalid_client', 401, 'The client could not be authenticated', { reason, headers });
  }

  /** The route, or the entry that its path names, does not exist: 404. For routes, not for grants. */
  static notFound(): OAuthError {
    return new OAuthError('not_found', 404, 'The route or the entry does not exist');
  }

  /** `Allow` is empty unless the code that knows the routes has set it. @internal */
  static methodNotAllowed(): OAuthError {
    const headers = { Allow: '' };
    return new OAuthError('method_not_allowed', 405, 'The route does not support this method', { headers });
  }

  /** @internal */
  static payloadTooLarge(): OAuthError {
    const headers = { Connection: 'close' }; // The client may still be sending the rest of the body.
    const hint = 'body: at most 16 KiB';
    return new OAuthError('payload_too_large', 413, 'The request body is too large', { hint, headers });
  }

  /** The body is compressed: 415. 16 KiB need no compression, and a few bytes could expand to gigabytes. @internal */
  static unsupportedEncoding(): OAuthError {
    return new OAuthError('invalid_request', 415, MALFORMED, { hint: 'Content-Encoding: must be absent or identity' });
  }

  /** The database or another dependency of the request is unavailable: 503 with `Retry-After` in seconds. */
  static unavailable(cause?: unknown, retryAfterSeconds = 1): OAuthError {
    const headers = { 'Retry-After': String(retryAfterSeconds) };
    const description = 'The service is unavailable at the moment; try again later';
    return new OAuthError('temporarily_unavailable', 503, description, { headers, cause });
  }

  /** A rate limit is exceeded: 429 with `Retry-After` in seconds. The hint names the limit. */
  static rateLimited(seconds: number, limit: string): OAuthError {
    const headers = { 'Retry-After': String(seconds) };
    const description = 'There were too many requests; try again later';
    const name = `limit: ${limit}`;
    return new OAuthError('temporarily_unavailable', 429, description, { headers, hint: name, reason: name });
  }

  /** The customer has too many devices: 429 with `Retry-After` in seconds. @internal */
  static tooManyDevices(seconds: number): OAuthError {
    const { description, headers } = OAuthError.rateLimited(seconds, 'devices');
    const hint = 'remember: the customer has 20 devices; end_sessions ends them';
    const details = { headers, hint, reason: 'limit: devices' };
    return new OAuthError('temporarily_unavailable', 429, description, details);
  }

  /** The request conflicts with stored data: 409. @internal */
  static conflict(hint: string): OAuthError {
    const description = 'The request conflicts with stored data';
    return new OAuthError('conflict', 409, description, { hint });
  }

  /** `If-Match` does not name the present state of the entry: 412. @internal */
  static preconditionFailed(): OAuthError {
    const description = 'The entry has changed since it was read';
    return new OAuthError('precondition_failed', 412, description, { hint: 'If-Match: not the ETag of the entry' });
  }

  /** The browser has another customer, and the request does not replace it: 409. @internal */
  static identityConflict(): OAuthError {
    const description = 'The browser already has another customer in this organization and group';
    const hint = 'replace: ask the user, then send true';
    return new OAuthError('identity_conflict', 409, description, { hint });
  }

  /** An unexpected error: 500. `cause` is only logged. */
  static serverError(cause: unknown): OAuthError {
    return new OAuthError('server_error', 500, 'The service met an unexpected condition', { cause });
  }

  /**
   * The error of an HTTP exception that an extension has thrown, with its status. Statuses without a code of their own
   * get `invalid_request` or `server_error`. @internal
   */
  static ofStatus(status: number, { reason, cause }: Pick<Details, 'reason' | 'cause'> = {}): OAuthError {
    const unnamed = status < 500 ? OAuthError.invalidRequest('') : OAuthError.serverError(undefined);
    const { code, description, headers } = OAuthError.named(status) ?? unnamed;
    return new OAuthError(code, status, description, { headers, cause, ...(reason && { reason }) });
  }

  private static named(status: number): OAuthError | undefined {
    const headers = { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' };
    if (status === 401) return OAuthError.invalidToken('');
    if (status === 403) return new OAuthError('insufficient_scope', 403, LACKS_SCOPE, { headers });
    if (status === 404) return OAuthError.notFound();
    if (status === 405) return OAuthError.methodNotAllowed();
    if (status === 409) return OAuthError.conflict('');
    if (status === 413) return OAuthError.payloadTooLarge();
    if (status === 429) return OAuthError.rateLimited(1, 'example');
    return status === 503 ? OAuthError.unavailable() : undefined;
  }

  /** Whether only a grant that declares `polling` may throw the error (RFC 8628 §3.5). @internal */
  get isPollingError(): boolean {
    return (POLLING_CODES as readonly string[]).includes(this.code);
  }

  /** Whether the client waits for a decision, so that it has not failed. @internal */
  get isPending(): boolean {
    return this.code === 'authorization_pending' || this.code === 'slow_down';
  }

  /** The response body, with the fields of RFC 6749 and the fields that existing browser SDKs read. */
  toBody(requestId: string): ErrorBody {
    return {
      error: this.code,
      error_description: this.description,
      ...(this.hint && { error_hint: this.hint }),
      oauth_exception: this.code,
      exception_description: this.description,
      request_id: requestId,
    };
  }
}

/** Errors of several checks, so that each hint is written once. */
export const REQUEST_ERRORS = {
  clientUnknown: () => OAuthError.invalidRequest('client_id: unknown'),
  clientOutsideOrganization: () => OAuthError.invalidRequest('client_id: not usable in this organization'),
  redirectUriUnknown: () =>
    OAuthError.invalidRequest("redirect_uri: not one of the client's; compare the trailing slash"),
  challengeRequired: () => OAuthError.invalidRequest('code_challenge: required with code_challenge_method'),
  customerUnknown: () => OAuthError.invalidRequest('customer_id: unknown'),
  assertionAndSecret: () =>
    OAuthError.invalidRequest('client_assertion: given in addition to client_secret or Authorization'),
};
