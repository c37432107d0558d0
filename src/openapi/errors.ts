import { STATUS_CODES } from 'node:http';
import { isAgentGuard, isBearerGuard } from '../bearer/bearer.guard.js';
import { OAuthError, REQUEST_ERRORS } from '../oauth/oauth-error.js';
import { UUID_RULE } from '../oauth/parameters.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { EXAMPLE, EXAMPLE_PAGE } from '../platform/http/api-examples.js';
import type { ApiError } from '../platform/http/api-route.js';
import { isCustomerRoute } from '../platform/http/surfaces.js';
import { declaredProperties } from '../platform/validation.js';
import type { Route } from '../routes/declared-routes.js';
import type { RegisteredGrant } from '../token/grant-registry.js';
import { TOKEN_ERRORS } from '../token/token-checks.js';
import type { TokenRouteOptions } from '../token/token-response.js';
import { type Schema, schemaOf } from './schemas.js';

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

function requestErrors(route: Route): ApiError[] {
  const { guards, parameters, description } = route;
  const { query } = description;
  const checksOrigin = parameters.checksClient || (guards.some(isBearerGuard) && isCustomerRoute(route));
  return [
    ...(query ? [OAuthError.invalidRequest('query: a parameter is given more than once')] : []),
    ...(parameters.checksClient ? [REQUEST_ERRORS.clientUnknown()] : []),
    ...(checksOrigin ? [REQUEST_ERRORS.foreignOrigin()] : []),
    ...(guards.some(isAgentGuard) ? [OAuthError.insufficientScope(EXAMPLE.scope)] : []),
    ...(parameters.checksClient ? [OAuthError.rateLimited(1, 'example')] : []),
  ];
}

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

const DESCRIPTIONS: Record<number, string> = {
  400: 'A parameter is missing or invalid, the proof of the grant is invalid, or the client may not use the grant. `error_hint` names the parameter and the rule.',
  401: 'The bearer token or the credentials are missing, wrong, expired or ended. Get a new token, or correct the credentials.',
  403: 'The bearer token lacks the scope that `WWW-Authenticate` names.',
  404: 'The route or the entry does not exist.',
  409: 'The request conflicts with stored data. The same request fails again until the conflict is resolved.',
  413: 'The body is larger than 16 KiB.',
  415: 'The body is compressed. Send it without `Content-Encoding`.',
  429: 'There were too many requests. Repeat the request after the seconds in `Retry-After`.',
  500: 'An unexpected error. The log has the cause under the `request_id`.',
  503: 'The database or another dependency is unavailable. Repeat the request after the seconds in `Retry-After`.',
};
const HEADERS: Record<string, string> = {
  'X-Request-Id': 'The id of the request. The log has it too.',
  'WWW-Authenticate': 'How to authenticate (RFC 6750 §3, RFC 7617).',
  'Retry-After': 'The seconds to wait before the next request.',
};
/** The errors of statuses for which a route declares no error of its own. */
const DEFAULT_ERRORS = [
  REQUEST_ERRORS.noJsonObject(),
  OAuthError.invalidToken('example'),
  OAuthError.insufficientScope(EXAMPLE.scope),
  OAuthError.notFound(),
  OAuthError.conflict('the entry already exists'),
  OAuthError.payloadTooLarge(),
  OAuthError.unsupportedEncoding(),
  OAuthError.rateLimited(1, 'example'),
  OAuthError.serverError(undefined),
  OAuthError.unavailable(),
];

export class ErrorComponents {
  readonly responses: Record<string, Schema> = {};
  readonly examples: Record<string, Schema> = {};

  /**
   * Routes of pages also have error pages. Responses with one example are components, because most routes share them.
   *
   * @param statuses statuses that have a default error unless `errors` has one
   */
  responsesOf(errors: ApiError[], statuses: number[], isPage: boolean): Schema {
    const all = new Set([...statuses, ...errors.map(({ status }) => status)]);
    const responses = [...all].map((status) => {
      const declared = errors.filter((error) => error.status === status);
      const shown = declared.length > 0 ? declared : defaultErrors(status);
      return [status, isPage ? this.errorPage(status, shown) : this.reference(status, shown)];
    });
    return Object.fromEntries(responses);
  }

  private reference(status: number, errors: ApiError[]): Schema {
    const [error] = errors;
    if (errors.length !== 1 || !error)
      return errorResponse(status, errors, { examples: this.exampleReferences(errors) });
    const name = `${status}.${nameOf(error)}`;
    this.responses[name] ??= errorResponse(status, errors, { example: bodyOf(error) });
    return { $ref: `#/components/responses/${name}` };
  }

  private errorPage(status: number, errors: ApiError[]): Schema {
    const { content, ...response } = errorResponse(status, errors, { examples: this.exampleReferences(errors) });
    const page = { schema: { type: 'string' }, example: EXAMPLE_PAGE };
    return { ...response, content: { ...(content as Schema), 'text/html': page } };
  }

  private exampleReferences(errors: ApiError[]): Schema {
    const references = errors.map((error) => {
      const name = nameOf(error);
      this.examples[name] ??= { summary: summaryOf(error), value: bodyOf(error) };
      return [name, { $ref: `#/components/examples/${name}` }];
    });
    return Object.fromEntries(references);
  }
}

function errorResponse(status: number, errors: ApiError[], examples: Schema): Schema {
  const description = DESCRIPTIONS[status] ?? `${STATUS_CODES[status] ?? 'An error of an extension'}.`;
  const values: Record<string, string> = Object.assign(
    { 'X-Request-Id': EXAMPLE.requestId },
    ...errors.map(({ headers }) => headers),
  );
  const described = Object.entries(values).filter(([name]) => Object.hasOwn(HEADERS, name));
  const headers = described.map(([name, example]) => [
    name,
    { description: HEADERS[name], schema: { type: 'string' }, example },
  ]);
  return {
    description,
    headers: Object.fromEntries(headers),
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, ...examples } },
  };
}

function defaultErrors(status: number): ApiError[] {
  const known = DEFAULT_ERRORS.filter((error) => error.status === status);
  return known.length > 0 ? known : [OAuthError.ofStatus(status)];
}

const bodyOf = (error: ApiError) => error.toBody(EXAMPLE.requestId);

/** The characters of names in components are limited. */
const nameOf = ({ code, hint = '' }: ApiError) => [code, ...(hint.match(/\w+/g) ?? [])].join('-');

const summaryOf = ({ code, hint }: ApiError) => (hint === undefined ? code : `${code}: ${hint}`);
