import { isAgentGuard, isBearerGuard } from '../../http/callers/bearer.guard.js';
import { OperatorGuard } from '../../http/callers/operator.guard.js';
import { isCustomerRoute } from '../../http/routes/customer-cors.js';
import type { Route } from '../../http/routes/declared-routes.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import type { ApiError } from '../../platform/http/api-route.js';
import type { RegisteredGrant } from '../../token/grant-registry.js';
import type { TokenRouteOptions } from '../../token/token-response.js';
import type { Schema } from './schemas.js';

/** The codes of a route's errors, by their statuses in ascending order. */
export type ErrorCodes = Map<string, Set<string>>;

const INVALID_REQUEST: ApiError = '400 invalid_request';
const OF_EVERY_ROUTE: ApiError[] = ['500 server_error', '503 temporarily_unavailable'];
const OF_BODIES: ApiError[] = [INVALID_REQUEST, '413 payload_too_large', '415 invalid_request'];

/** The routes declare their own errors; the others follow from the route. */
export function errorCodesOf(route: Route, token?: TokenRouteOptions, grants?: RegisteredGrant[]): ErrorCodes {
  const { guards, parameters, path, description } = route;
  const { body, query, security = [], errors = [] } = description;
  const isOperator = guards.includes(OperatorGuard);
  const needsRole = isOperator || security.includes('operator');
  const hasBearer = isOperator || guards.some(isBearerGuard) || grants?.some(({ agentScope }) => agentScope);
  const checksOrigin = parameters.checksClient || (guards.some(isBearerGuard) && isCustomerRoute(route));
  const isCalledByAgent = guards.some(isAgentGuard) || grants?.some(({ agentScope }) => agentScope);
  const all: ApiError[] = [
    ...(body || grants ? OF_BODIES : []),
    ...(query || checksOrigin || path.includes('{') ? [INVALID_REQUEST] : []),
    ...(grants ? ['400 unauthorized_client' as const] : []),
    ...(token && !token.grantType ? ['400 unsupported_grant_type' as const] : []),
    ...(hasBearer ? ['401 invalid_token' as const] : []),
    ...(security.length > 0 ? ['401 invalid_client' as const] : []),
    ...(isCalledByAgent || needsRole ? ['403 insufficient_scope' as const] : []),
    ...(isOperator ? ['404 not_found' as const] : []),
    ...(parameters.checksClient || grants ? ['429 temporarily_unavailable' as const] : []),
    ...errors,
    ...(grants?.flatMap(({ api }) => api?.errors ?? []) ?? []),
    ...OF_EVERY_ROUTE,
  ];
  const codes: ErrorCodes = new Map();
  for (const error of all.sort()) {
    const [status = '', code = ''] = error.split(' ');
    codes.set(status, (codes.get(status) ?? new Set()).add(code));
  }
  return codes;
}

/** The sentence of a route's description that lists its errors. */
export function errorSentence(errors: ErrorCodes): string {
  const list = [...errors].map(([status, codes]) => `${status} ${[...codes].map((code) => `\`${code}\``).join(', ')}`);
  return `Errors: ${list.join('; ')}.`;
}

/** Every error has one schema. Routes of pages also have error pages. */
export function errorResponsesOf(errors: ErrorCodes, isPage: boolean): Record<string, Schema> {
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
