import { isAgentGuard, isBearerGuard } from '../bearer/bearer.guard.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { UUID_RULE } from '../oauth/parameters.js';
import { REQUEST_ERRORS } from '../oauth/request-errors.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import type { ApiError } from '../platform/http/api-route.js';
import { isCustomerRoute, pathOn } from '../platform/http/surfaces.js';
import { declaredProperties } from '../platform/validation.js';
import type { Route } from '../routes/declared-routes.js';
import type { RegisteredGrant } from '../token/grant-registry.js';
import { TOKEN_ERRORS } from '../token/token-checks.js';
import type { TokenRouteOptions } from '../token/token-response.js';
import { schemaOf } from './schemas.js';

const ERRORS_OF_EVERY_ROUTE = [OAuthError.serverError(undefined), OAuthError.unavailable()];
const ERRORS_OF_BODIES = [OAuthError.payloadTooLarge(), OAuthError.unsupportedEncoding()];

/** The errors that a route can have, each once. The routes declare their own errors; the others follow from the route. */
export function errorsOf(route: Route, token?: TokenRouteOptions, grants?: RegisteredGrant[]): ApiError[] {
  const { description, path } = route;
  const all = [
    ...(grants ? errorsOfGrants(grants, token) : errorsOfBody(route)),
    ...(path.includes('{') ? [REQUEST_ERRORS.pathEncoding()] : []),
    ...authenticationErrors(route, grants),
    ...requestErrors(route),
    ...(description.errors?.() ?? []),
    ...ERRORS_OF_EVERY_ROUTE,
  ];
  return [...new Map(all.map((error) => [`${error.status} ${error.code} ${error.hint}`, error])).values()];
}

function errorsOfBody({ method, description: { body, bodyFormats = ['json'] } }: Route): ApiError[] {
  const classes = [body ?? []].flat();
  if (classes.length === 0) return [];
  const required = method === 'patch' ? [] : classes.flatMap((each) => schemaOf(each).required?.slice(0, 1) ?? []);
  return [
    ...required.map((name) => OAuthError.invalidRequest(`${name}: required`)),
    ...(bodyFormats.includes('json') ? [OAuthError.invalidMessage()] : []),
    ...ERRORS_OF_BODIES,
  ];
}

function authenticationErrors({ guards, description: { security = [] } }: Route, grants: RegisteredGrant[] = []) {
  const isOperator = guards.includes(OperatorGuard);
  const withBearer = isOperator || guards.some(isBearerGuard) || grants.some(({ agentScope }) => agentScope);
  return [
    ...(withBearer ? [OAuthError.invalidToken('example')] : []),
    ...(security.length > 0 ? [OAuthError.invalidClient('example')] : []),
    ...(isOperator ? [OAuthError.notFound()] : []),
  ];
}

/** The errors of the query, the `Origin` and the client, which decorators and guards check. */
function requestErrors({ guards, path, parameters, surface, description: { query } }: Route): ApiError[] {
  const checksOrigin =
    parameters.checksClient || (guards.some(isBearerGuard) && isCustomerRoute(pathOn(surface, path)));
  return [
    ...(query ? [OAuthError.invalidRequest('query: a parameter is given more than once')] : []),
    ...(parameters.checksClient ? [REQUEST_ERRORS.clientUnknown()] : []),
    ...(checksOrigin ? [REQUEST_ERRORS.foreignOrigin()] : []),
    ...(guards.some(isAgentGuard) ? [OAuthError.insufficientScope(EXAMPLE.scope)] : []),
    ...(parameters.checksClient ? [OAuthError.rateLimited(1, 'example')] : []),
  ];
}

/** The errors of the checks of the token endpoint, and those that the grants declare. */
function errorsOfGrants(grants: RegisteredGrant[], token?: TokenRouteOptions): ApiError[] {
  const declares = (name: string) => grants.some(({ body }) => declaredProperties(body).includes(name));
  const byAgent = grants.flatMap(({ agentScope }) => (agentScope === undefined ? [] : [agentScope]));
  return [
    OAuthError.invalidMessage(),
    ...(token?.grantType ? [] : [OAuthError.invalidRequest('grant_type: required'), OAuthError.unsupportedGrantType()]),
    OAuthError.invalidRequest('client_id: required'),
    REQUEST_ERRORS.clientUnknown(),
    REQUEST_ERRORS.foreignOrigin(),
    TOKEN_ERRORS.grant(),
    ...(declares('redirect_uri') ? [REQUEST_ERRORS.redirectUriUnknown()] : []),
    ...(declares('organization_id') ? [OAuthError.invalidRequest(`organization_id: ${UUID_RULE}`)] : []),
    REQUEST_ERRORS.organizationUnknown(),
    REQUEST_ERRORS.clientOutsideOrganization(),
    ...byAgent.map((scope) => OAuthError.insufficientScope(scope)),
    ...(byAgent.length > 0 ? [TOKEN_ERRORS.organization()] : []),
    ...ERRORS_OF_BODIES,
    OAuthError.rateLimited(1, 'example'),
    ...grants.flatMap(({ api }) => api?.errors?.() ?? []),
  ];
}
