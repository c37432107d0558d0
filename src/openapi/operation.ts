import { Reflector } from '@nestjs/core';
import { BearerGuard } from '../bearer/bearer.guard.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import type { RegisteredGrant } from '../token/grant-registry.js';
import { FixedGrantType, TokenRoute } from '../token/token-route.js';
import { errorResponsesOf } from './error-responses.js';
import { grantBodies, grantResponse } from './grant-schemas.js';
import type { Route } from './routes.js';
import { oneOf, patchOf, responseSchemaOf, type Schema, schemaOf } from './schemas.js';

/** How callers say who they are, by the names that routes describe. */
export const SECURITY_SCHEMES: Schema = {
  bearer: { type: 'http', scheme: 'bearer', description: 'An access token of a customer or of an agent' },
  operator: { type: 'http', scheme: 'bearer', description: 'ADMIN_TOKEN' },
  client: { type: 'http', scheme: 'basic', description: 'client_id and client_secret of a registered client' },
  resource_server: { type: 'http', scheme: 'basic', description: 'id and secret of a registered resource server' },
};

/** Statuses that any route may answer. */
const STATUSES_OF_EVERY_ROUTE = [500, 503];
/** Statuses that reading a body brings. */
const STATUSES_OF_BODIES = [400, 413, 415];
const MEDIA_TYPES = { json: 'application/json', form: 'application/x-www-form-urlencoded' };
const MERGE_PATCH = 'application/merge-patch+json';
const reflector = new Reflector();

/** A route as OpenAPI's operation object; `grants` are those that the service has. */
export function operationOf(route: Route, grants: RegisteredGrant[]): Schema {
  const { surface, path: address, method, description } = route;
  const { summary, query } = description;
  const asked = grantsOfRoute(route, grants);
  return {
    operationId: `${method}${address.replace(/\W+/g, '_').replace(/_$/, '')}`,
    summary,
    tags: [surface],
    security: securityOf(route, asked),
    parameters: [...pathParameters(address), ...(query ? queryParameters(schemaOf(query)) : [])],
    ...(asked
      ? { requestBody: grantRequestBody(route, asked) }
      : description.body && { requestBody: requestBody(route) }),
    responses: {
      ...successResponses(route, asked),
      ...errorResponsesOf(errorStatusesOf(route, asked), description.response === 'text/html'),
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

function grantRequestBody(route: Route, asked: RegisteredGrant[]): Schema {
  const content = (those: RegisteredGrant[]) => ({
    schema: grantBodies(those, reflector.get(TokenRoute, route.handler)),
  });
  const forms = asked.filter(({ form }) => form);
  return {
    required: true,
    content: { [MEDIA_TYPES.json]: content(asked), ...(forms.length > 0 && { [MEDIA_TYPES.form]: content(forms) }) },
  };
}

function requestBody({ method, description }: Route): Schema {
  const classes = [description.body ?? []].flat();
  if (method === 'patch')
    return { required: true, content: { [MERGE_PATCH]: { schema: oneOf(classes.map(patchOf)) } } };
  const schema = oneOf(classes.map(schemaOf));
  const written = (description.bodyFormats ?? ['json']).map((way) => [MEDIA_TYPES[way], { schema }]);
  return { required: isAnyRequired(schema), content: Object.fromEntries(written) };
}

function isAnyRequired({ required, oneOf: alternatives }: Schema): boolean {
  return alternatives !== undefined || (Array.isArray(required) && required.length > 0);
}

function successResponses(
  { status, description: { response: answer, redirects } }: Route,
  asked?: RegisteredGrant[],
): Schema {
  const isText = typeof answer === 'string';
  const one =
    answer === undefined ? { type: 'object', additionalProperties: false } : isText ? {} : responseSchemaOf(answer);
  const schema = asked ? { anyOf: asked.map(grantResponse) } : one;
  const content = { [isText ? answer : MEDIA_TYPES.json]: { schema } };
  const redirect = { description: 'To the application, or back to the page', headers: { Location: { schema: {} } } };
  return { [status]: { description: 'Done', content }, ...(redirects && { 302: redirect, 303: redirect }) };
}

function errorStatusesOf({ guards, description, path: address }: Route, asked?: RegisteredGrant[]): number[] {
  const { body, errorStatuses: refusals = [], security = [] } = description;
  return [
    ...STATUSES_OF_EVERY_ROUTE,
    ...refusals,
    ...(body || asked ? STATUSES_OF_BODIES : []),
    ...(asked ? [429] : []),
    ...(asked?.some(({ agentScope }) => agentScope) ? [401, 403] : []),
    ...(guards.includes(BearerGuard) || security.length > 0 ? [401] : []),
    ...(guards.includes(OperatorGuard) ? [401, 404] : []),
    ...(address.includes('{') ? [400] : []), // a path whose percent-encoding is broken
  ];
}

function securityOf({ guards, description }: Route, asked?: RegisteredGrant[]): Schema[] {
  const named = description.security?.map((name) => (name === 'none' ? {} : { [name]: [] })) ?? [];
  const ofGrants = asked?.map(({ agentScope }) => (agentScope === undefined ? {} : { bearer: [] })) ?? [];
  const ofGuards = [
    ...(guards.includes(BearerGuard) ? [{ bearer: [] }] : []),
    ...(guards.includes(OperatorGuard) ? [{ operator: [] }] : []),
  ];
  const all = [...named, ...ofGrants, ...ofGuards].map((each) => JSON.stringify(each));
  return [...new Set(all)].map((each) => JSON.parse(each));
}

function pathParameters(address: string): Schema[] {
  const names = [...address.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
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
