import { Reflector } from '@nestjs/core';
import { isBearerGuard } from '../bearer/bearer.guard.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import type { Route } from '../routes/declared-routes.js';
import type { RegisteredGrant } from '../token/grant-registry.js';
import { TokenRoute, type TokenRouteOptions } from '../token/token-response.js';
import { errorsOf } from './api-errors.js';
import type { ErrorComponents } from './error-responses.js';
import { claimProperties, grantResponse, grantResponseExamples } from './grant-schemas.js';
import { grantRequestBody, JSON_TYPE, requestBody } from './request-bodies.js';
import { anyOf, mediaExamples, objectExamples, responseSchemaOf, type Schema, schemaOf } from './schemas.js';

/** The authentication schemes. Routes refer to them by these names. */
export const SECURITY_SCHEMES: Schema = {
  bearer: { type: 'http', scheme: 'bearer', description: 'An access token of a customer or of an agent' },
  operator: { type: 'http', scheme: 'bearer', description: 'A token of ADMIN_TOKEN or ADMIN_TOKENS' },
  client: { type: 'http', scheme: 'basic', description: 'client_id and client_secret of a registered client' },
  resource_server: { type: 'http', scheme: 'basic', description: 'id and secret of a registered resource server' },
};

const EMPTY_OBJECT: Schema = { type: 'object', additionalProperties: false };
const REDIRECT = `${EXAMPLE.redirectUri}?code=${encodeURIComponent(EXAMPLE.authorizationCode)}`;
const reflector = new Reflector();

/** @param components gets the components of the error responses */
export function operationOf(route: Route, grants: RegisteredGrant[], components: ErrorComponents): Schema {
  const { surface, path, method, handler, description: texts } = route;
  const { summary, description, query, response, errorStatuses = [] } = texts;
  const token = reflector.get(TokenRoute, handler);
  const routeGrants = token && grantsOf(token, grants);
  const errors = errorsOf(route, token, routeGrants);
  return {
    operationId: `${method}${path.replace(/\W+/g, '_').replace(/_$/, '')}`,
    summary,
    ...(description !== undefined && { description }),
    tags: [surface],
    security: securityOf(route, routeGrants),
    parameters: [...pathParameters(route), ...(query ? queryParameters(schemaOf(query)) : [])],
    ...(token && routeGrants
      ? { requestBody: grantRequestBody(token, routeGrants) }
      : texts.body && { requestBody: requestBody(route) }),
    responses: {
      ...successResponses(route, grants, routeGrants),
      ...components.responsesOf(errors, errorStatuses, response === 'text/html'),
    },
  };
}

/** The grants that a token route offers. */
function grantsOf({ group, grantType }: TokenRouteOptions, grants: RegisteredGrant[]): RegisteredGrant[] {
  if (grantType) return grants.filter(({ name }) => name === grantType);
  return group ? grants.filter(({ groups }) => groups) : grants;
}

function successResponses(
  { status, description: { response, responseExamples, redirects, withGrantClaims } }: Route,
  all: RegisteredGrant[],
  grants?: RegisteredGrant[],
): Schema {
  const redirect = {
    description: 'Redirect to the application, or back to the page.',
    headers: { Location: { description: 'The URL to open.', schema: { type: 'string' }, example: REDIRECT } },
  };
  const redirection = redirects && { 302: redirect, 303: redirect };
  const success = (type: string, description: string, media: Schema) => ({
    [status]: { description, content: { [type]: media } },
    ...redirection,
  });
  if (grants) {
    const schema = anyOf(grants.map(grantResponse));
    return success(JSON_TYPE, 'The customer access token.', { schema, ...grantResponseExamples(grants) });
  }
  if (response === undefined)
    return success(JSON_TYPE, 'Success. The response is an empty object.', { schema: EMPTY_OBJECT, example: {} });
  if (typeof response === 'string')
    return success(response, 'Success.', { schema: {}, ...(responseExamples && { example: responseExamples }) });
  const schema = responseSchemaOf(response, withGrantClaims ? claimProperties(all) : {});
  const examples = typeof responseExamples === 'string' ? undefined : responseExamples;
  return success(JSON_TYPE, 'Success.', { schema, ...mediaExamples(objectExamples(schema, examples, 'all')) });
}

function securityOf({ guards, description }: Route, grants?: RegisteredGrant[]): Schema[] {
  const named = description.security?.map((name) => (name === 'none' ? {} : { [name]: [] })) ?? [];
  const ofGrants = grants?.map(({ agentScope }) => (agentScope === undefined ? {} : { bearer: [] })) ?? [];
  const ofGuards = [
    ...(guards.some(isBearerGuard) ? [{ bearer: [] }] : []),
    ...(guards.includes(OperatorGuard) ? [{ operator: [] }] : []),
  ];
  const all = [...named, ...ofGrants, ...ofGuards].map((each) => JSON.stringify(each));
  return [...new Set(all)].map((each) => JSON.parse(each));
}

function pathParameters({ path, description: { pathParameters: texts = {} } }: Route): Schema[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  return names.map((name) => ({
    name,
    in: 'path',
    required: true,
    ...texts[name],
    schema: { type: 'string' },
  }));
}

function queryParameters({ properties, required = [] }: ReturnType<typeof schemaOf>): Schema[] {
  return Object.entries(properties).map(([name, { description, examples, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description !== undefined && { description }),
    ...(Array.isArray(examples) && { example: examples[0] }),
    schema,
  }));
}
