import { isAgentGuard, isBearerGuard } from '../../http/callers/bearer.guard.js';
import { OperatorGuard } from '../../http/callers/operator.guard.js';
import { isCustomerRoute } from '../../http/routes/customer-cors.js';
import type { Route } from '../../http/routes/declared-routes.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import type { ApiError } from '../../platform/http/api-route.js';
import type { RegisteredGrant } from '../../token/grant-registry.js';
import type { TokenRouteOptions } from '../../token/token-response.js';
import type { Schema } from './schemas.js';

/** The codes of a route's errors, by their statuses in ascending order. */
export type ErrorCodes = Map<number, Set<string>>;

type StatusAndCode = Pick<ApiError, 'status' | 'code'>;

const INVALID_REQUEST = { status: 400, code: 'invalid_request' };
const OF_EVERY_ROUTE = [
  { status: 500, code: 'server_error' },
  { status: 503, code: 'temporarily_unavailable' },
];
const OF_BODIES = [
  INVALID_REQUEST,
  { status: 413, code: 'payload_too_large' },
  { status: 415, code: 'invalid_request' },
];
const RATE_LIMITED = { status: 429, code: 'temporarily_unavailable' };
const INSUFFICIENT_SCOPE = { status: 403, code: 'insufficient_scope' };

/** The routes declare their own errors; the others follow from the route. */
export function errorCodesOf(route: Route, token?: TokenRouteOptions, grants?: RegisteredGrant[]): ErrorCodes {
  const { guards, parameters, path, description } = route;
  const { body, query, security = [], errors, errorStatuses = [] } = description;
  const isOperator = guards.includes(OperatorGuard);
  const needsRole = isOperator || security.includes('operator');
  const hasBearer = isOperator || guards.some(isBearerGuard) || grants?.some(({ agentScope }) => agentScope);
  const checksOrigin = parameters.checksClient || (guards.some(isBearerGuard) && isCustomerRoute(route));
  const isCalledByAgent = guards.some(isAgentGuard) || grants?.some(({ agentScope }) => agentScope);
  const all: StatusAndCode[] = [
    ...(body || grants ? OF_BODIES : []),
    ...(query || checksOrigin || path.includes('{') ? [INVALID_REQUEST] : []),
    ...(grants ? [{ status: 400, code: 'unauthorized_client' }] : []),
    ...(token && !token.grantType ? [{ status: 400, code: 'unsupported_grant_type' }] : []),
    ...(hasBearer ? [{ status: 401, code: 'invalid_token' }] : []),
    ...(security.length > 0 ? [{ status: 401, code: 'invalid_client' }] : []),
    ...(isCalledByAgent || needsRole ? [INSUFFICIENT_SCOPE] : []),
    ...(isOperator ? [{ status: 404, code: 'not_found' }] : []),
    ...(parameters.checksClient || grants ? [RATE_LIMITED] : []),
    ...(errors?.() ?? []),
    ...(grants?.flatMap(({ api }) => api?.errors?.() ?? []) ?? []),
    ...errorStatuses.map((status) => OAuthError.ofStatus(status)),
    ...OF_EVERY_ROUTE,
  ];
  const codes: ErrorCodes = new Map();
  for (const { status, code } of all.sort((one, other) => one.status - other.status))
    codes.set(status, (codes.get(status) ?? new Set()).add(code));
  return codes;
}

/** The sentence of a route's description that lists its errors. */
export function errorSentence(errors: ErrorCodes): string {
  const list = [...errors].map(([status, codes]) => `${status} ${[...codes].map((code) => `\`${code}\``).join(', ')}`);
  return `Errors: ${list.join('; ')}.`;
}

/** Every error has one schema. Routes of pages also have error pages. */
export function errorResponsesOf(errors: ErrorCodes, isPage: boolean): Schema {
  const reference = { $ref: `#/components/responses/${isPage ? 'ErrorOrPage' : 'Error'}` };
  return Object.fromEntries([...errors.keys()].map((status) => [status, reference]));
}

const header = (description: string, example: string) => ({ description, schema: { type: 'string' }, example });
const ERROR: Schema = {
  description:
    'An error. `error` has its code, and `error_hint` names the parameter and the rule. Branch on the status and the code, and log the `request_id`.',
  headers: {
    'X-Request-Id': header('The id of the request. The log has it too.', EXAMPLE.requestId),
    'Retry-After': header('With 429 and 503: the seconds to wait before the next request.', '1'),
    'WWW-Authenticate': header(
      'With 401 and 403: how to authenticate (RFC 6750 §3, RFC 7617).',
      'Bearer error="invalid_token"',
    ),
  },
};
const JSON_ERROR: Schema = {
  schema: { $ref: '#/components/schemas/Error' },
};
const PAGE: Schema = { schema: { type: 'string' } };

export const ERROR_RESPONSES: Record<'Error' | 'ErrorOrPage', Schema> = {
  Error: { ...ERROR, content: { 'application/json': JSON_ERROR } },
  ErrorOrPage: { ...ERROR, content: { 'application/json': JSON_ERROR, 'text/html': PAGE } },
};
