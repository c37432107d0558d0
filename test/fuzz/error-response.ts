/** An error response, reduced to the parts that the rules check. */
export interface ErrorResponse {
  status: number;
  text: string;
  /** The values of the `Set-Cookie` headers. */
  cookies: string[];
  /** The value of a header; its name is in lower case. */
  header(name: string): string | undefined;
}

/** The statuses of each error (protocol §2.12). */
const STATUSES: Record<string, number[]> = {
  invalid_request: [400, 408, 415, 431],
  invalid_token: [401],
  invalid_grant: [400],
  unauthorized_client: [400],
  invalid_scope: [400],
  unsupported_grant_type: [400],
  insufficient_scope: [403],
  invalid_client: [401],
  not_found: [404],
  method_not_allowed: [405],
  conflict: [409],
  identity_conflict: [409],
  payload_too_large: [413],
  temporarily_unavailable: [429],
  authorization_pending: [400],
  slow_down: [400],
  expired_token: [400],
  access_denied: [400],
};
/** Statuses below 500 that have no code of their own, which HTTP exceptions of an extension may have. */
const UNNAMED = Array.from({ length: 100 }, (_, index) => 400 + index).filter(
  (status) => status === 400 || !Object.values(STATUSES).flat().includes(status),
);
const statusesOf = (error: unknown): number[] => [
  ...(STATUSES[String(error)] ?? []),
  ...(error === 'invalid_request' ? UNNAMED : []),
];
const FIELDS = [
  ...['error', 'error_description', 'error_hint'],
  ...['oauth_exception', 'exception_description', 'request_id'],
];
/** The header that an error response with a status must have. */
const HEADERS: Record<number, string> = {
  401: 'www-authenticate',
  403: 'www-authenticate',
  405: 'allow',
  429: 'retry-after',
};

/** How an error response violates protocol §2.11 and §2.12; `undefined` if it does not. */
export function violationOfErrorResponse(response: ErrorResponse): string | undefined {
  const { status, text, cookies, header } = response;
  if (cookies.some((line) => /^[^=]*c(id|st)=/.test(line))) return 'an error response that gives an identity';
  if (header('cache-control') !== 'no-store') return 'an error response that may be stored';
  const needed = HEADERS[status];
  if (needed && !header(needed)) return `${status} without ${needed}`;
  if (!header('content-type')?.startsWith('application/json') || text === '') return undefined;
  return violationOfErrorBody(status, JSON.parse(text), header('x-request-id'));
}

function violationOfErrorBody(status: number, body: Record<string, unknown>, requestId?: string): string | undefined {
  const unknownField = Object.keys(body).find((field) => !FIELDS.includes(field));
  if (unknownField !== undefined) return `an error with the field ${unknownField}`;
  if (!statusesOf(body.error).includes(status)) return `${body.error} with ${status}`;
  if (body.oauth_exception !== body.error) return 'oauth_exception is not error';
  if (typeof body.error_description !== 'string' || body.error_description === '') return 'no error_description';
  if (body.exception_description !== body.error_description) return 'two descriptions';
  if (body.request_id !== requestId) return 'request_id is not X-Request-Id';
  return undefined;
}
