import { Reflector } from '@nestjs/core';
import { BearerGuard } from '../bearer/bearer.guard.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import type { RegisteredGrant } from '../token/grant-registry.js';
import { FixedGrantType, TokenRoute } from '../token/token-route.js';
import { errorResponsesOf } from './error-responses.js';
import { claimProperties, grantBodies, grantResponse } from './grant-schemas.js';
import type { Route } from './routes.js';
import { oneOf, patchOf, responseSchemaOf, type Schema, schemaOf } from './schemas.js';

/** The authentication schemes. Routes refer to them by these names. */
export const SECURITY_SCHEMES: Schema = {
  bearer: { type: 'http', scheme: 'bearer', description: 'An access token of a customer or of an agent' },
  operator: { type: 'http', scheme: 'bearer', description: 'A token of ADMIN_TOKEN or ADMIN_TOKENS' },
  client: { type: 'http', scheme: 'basic', description: 'client_id and client_secret of a registered client' },
  resource_server: { type: 'http', scheme: 'basic', description: 'id and secret of a registered resource server' },
};

/** Error statuses that every route can have. */
const STATUSES_OF_EVERY_ROUTE = [500, 503];
/** Error statuses of routes that read a body. */
const STATUSES_OF_BODIES = [400, 413, 415];
const MEDIA_TYPES = { json: 'application/json', form: 'application/x-www-form-urlencoded' };
const MERGE_PATCH = 'application/merge-patch+json';
const reflector = new Reflector();

/**
 * The operation object of a route.
 *
 * @param grants all grants of the service
 */
export function operationOf(route: Route, grants: RegisteredGrant[]): Schema {
  const { surface, path, method, description } = route;
  const { summary, query } = description;
  const routeGrants = grantsOfRoute(route, grants);
  return {
    operationId: `${method}${path.replace(/\W+/g, '_').replace(/_$/, '')}`,
    summary,
    tags: [surface],
    security: securityOf(route, routeGrants),
    parameters: [...pathParameters(path), ...(query ? queryParameters(schemaOf(query)) : [])],
    ...(routeGrants
      ? { requestBody: grantRequestBody(route, routeGrants) }
      : description.body && { requestBody: requestBody(route) }),
    responses: {
      ...successResponses(route, grants, routeGrants),
      ...errorResponsesOf(errorStatusesOf(route, routeGrants), description.response === 'text/html'),
    },
  };
}

/** The grants that a token route offers; `undefined` for any other route. */
function grantsOfRoute({ handler }: Route, grants: RegisteredGrant[]): RegisteredGrant[] | undefined {
  switch (reflector.get(TokenRoute, handler)) {
    case undefined:
      return undefined;
    case 'fixed-grant':
      return grants.filter(({ name }) => name === reflector.get(FixedGrantType, handler));
    case 'group':
      return grants.filter(({ groups }) => groups);
    default:
      return grants;
  }
}

function grantRequestBody(route: Route, grants: RegisteredGrant[]): Schema {
  const content = (offered: RegisteredGrant[]) => ({
    schema: grantBodies(offered, reflector.get(TokenRoute, route.handler)),
  });
  const withForm = grants.filter(({ form }) => form);
  return {
    required: true,
    content: {
      [MEDIA_TYPES.json]: content(grants),
      ...(withForm.length > 0 && { [MEDIA_TYPES.form]: content(withForm) }),
    },
  };
}

function requestBody({ method, description }: Route): Schema {
  const classes = [description.body ?? []].flat();
  if (method === 'patch')
    return { required: true, content: { [MERGE_PATCH]: { schema: oneOf(classes.map(patchOf)) } } };
  const schema = oneOf(classes.map(schemaOf));
  const contents = (description.bodyFormats ?? ['json']).map((format) => [MEDIA_TYPES[format], { schema }]);
  return { required: isAnyRequired(schema), content: Object.fromEntries(contents) };
}

function isAnyRequired({ required, oneOf: alternatives }: Schema): boolean {
  return alternatives !== undefined || (Array.isArray(required) && required.length > 0);
}

function successResponses(
  { status, description: { response, redirects, withGrantClaims } }: Route,
  all: RegisteredGrant[],
  grants?: RegisteredGrant[],
): Schema {
  const isText = typeof response === 'string';
  const single =
    response === undefined
      ? { type: 'object', additionalProperties: false }
      : isText
        ? {}
        : responseSchemaOf(response, withGrantClaims ? claimProperties(all) : {});
  const schema = grants ? { anyOf: grants.map(grantResponse) } : single;
  const content = { [isText ? response : MEDIA_TYPES.json]: { schema } };
  const redirect = {
    description: 'Redirect to the application, or back to the page',
    headers: { Location: { schema: {} } },
  };
  return { [status]: { description: 'Success', content }, ...(redirects && { 302: redirect, 303: redirect }) };
}

function errorStatusesOf({ guards, description, path }: Route, grants?: RegisteredGrant[]): number[] {
  const { body, errorStatuses = [], security = [] } = description;
  return [
    ...STATUSES_OF_EVERY_ROUTE,
    ...errorStatuses,
    ...(body || grants ? STATUSES_OF_BODIES : []),
    ...(grants ? [429] : []),
    ...(grants?.some(({ agentScope }) => agentScope) ? [401, 403] : []),
    ...(guards.includes(BearerGuard) || security.length > 0 ? [401] : []),
    ...(guards.includes(OperatorGuard) ? [401, 404] : []),
    ...(path.includes('{') ? [400] : []), // invalid percent-encoding in a path parameter
  ];
}

function securityOf({ guards, description }: Route, grants?: RegisteredGrant[]): Schema[] {
  const named = description.security?.map((name) => (name === 'none' ? {} : { [name]: [] })) ?? [];
  const ofGrants = grants?.map(({ agentScope }) => (agentScope === undefined ? {} : { bearer: [] })) ?? [];
  const ofGuards = [
    ...(guards.includes(BearerGuard) ? [{ bearer: [] }] : []),
    ...(guards.includes(OperatorGuard) ? [{ operator: [] }] : []),
  ];
  const all = [...named, ...ofGrants, ...ofGuards].map((each) => JSON.stringify(each));
  return [...new Set(all)].map((each) => JSON.parse(each));
}

function pathParameters(path: string): Schema[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  return names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }));
}

function queryParameters({ properties, required = [] }: ReturnType<typeof schemaOf>): Schema[] {
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }));
}
