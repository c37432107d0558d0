/**
 * Why a token is not accepted: the status of the response and the message. Most codes are the words with which the
 * service itself explains an inactive token.
 */
const ERRORS = {
  missing_token: [401, 'The request has no header Authorization: Bearer <token>.'],
  malformed: [401, 'The text is neither REGION:JWS nor a JWS.'],
  percent_encoded: [401, 'The text contains %3A. The caller must replace %3A by a colon.'],
  not_an_access_token: [401, 'The text is a code, a refresh token or a JWS of another type.'],
  unknown_key: [401, 'No published key has the kid of the token.'],
  invalid_signature: [401, 'The signature does not match the content of the token.'],
  rejected_claim: [401, 'A claim is missing or has the wrong type.'],
  other_issuer: [401, 'The issuer of the token is not the configured one.'],
  other_audience: [401, 'The token is for another API.'],
  expired: [401, 'The token has expired.'],
  not_yet_valid: [401, 'The token was issued in the future: a clock differs by more than 30 s.'],
  revoked: [401, 'The token or its session was ended.'],
  ancestor_revoked: [401, 'The session of the agent that obtained this token was ended.'],
  client_revoked: [401, 'The client of the token was deleted or suspended.'],
  organization_suspended: [401, 'The organization of the token is suspended, or was since the token was issued.'],
  customer_generation: [401, 'The customer was erased, or all its tokens were ended.'],
  keys_unavailable: [503, 'The key of the token is not known, and cannot be fetched now.'],
  revocations_stale: [503, 'The revocations are not known up to a recent moment.'],
  verifier_closed: [503, 'The verifier is closed.'],
} as const satisfies Record<string, readonly [status: 401 | 503, message: string]>;

export type TokenErrorCode = keyof typeof ERRORS;

const RETRY_AFTER_SECONDS = 5;

export interface TokenVerifierErrorOptions extends ErrorOptions {
  /** For the header of a response with status 503. */
  retryAfterSeconds?: number;
}

/**
 * A token that is not accepted. Express and NestJS make the response from the properties of the package http-errors.
 */
export class TokenVerifierError extends Error {
  override readonly name = 'TokenVerifierError';
  readonly code: TokenErrorCode;
  /** 401: the token is not valid. 503: the verifier cannot decide now. */
  readonly statusCode: 401 | 503;
  readonly status: 401 | 503;
  /** The response must not contain the message. */
  readonly expose = false;
  /** Headers for the response (RFC 6750 §3, RFC 9110 §10.2.3). */
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: TokenErrorCode, options: TokenVerifierErrorOptions = {}) {
    const [statusCode, message] = ERRORS[code];
    super(message, options);
    this.code = code;
    this.statusCode = statusCode;
    this.status = statusCode;
    const { retryAfterSeconds = RETRY_AFTER_SECONDS } = options;
    this.headers = statusCode === 503 ? { 'Retry-After': `${retryAfterSeconds}` } : challengeOf(code);
  }
}

/** A request without a token gets a challenge without an error code (RFC 6750 §3.1). */
function challengeOf(code: TokenErrorCode): Record<string, string> {
  return { 'WWW-Authenticate': code === 'missing_token' ? 'Bearer' : 'Bearer error="invalid_token"' };
}
