import { Reflector } from '@nestjs/core';
import { isBearerGuard } from '../../http/callers/bearer.guard.js';
import { OperatorGuard } from '../../http/callers/operator.guard.js';
import type { Route } from '../../http/routes/declared-routes.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import type { ApiRouteDescription } from '../../platform/http/api-route.js';
import { hasNoContent } from '../../platform/http/service-http-adapter.js';
import type { RegisteredGrant } from '../../token/grant-registry.js';
import { TokenRoute, type TokenRouteOptions } from '../../token/token-response.js';
import { errorCodesOf, errorResponsesOf, errorSentence } from './errors.js';
import { claimProperties, grantBodies, grantResponse } from './grant-schemas.js';
import { operationIdOf } from './operation-ids.js';
import { anyOf, oneOf, patchOf, responseSchemaOf, type Schema, schemaOf } from './schemas.js';
import { tagOf } from './tags.js';

/** The authentication schemes. Routes refer to them by these names. */
export const SECURITY_SCHEMES: Record<string, Schema> = {
  bearer: { type: 'http', scheme: 'bearer', description: 'An access token of a customer or of an agent' },
  operator: { type: 'http', scheme: 'bearer', description: 'An admin token with the role that the route needs' },
  client: { type: 'http', scheme: 'basic', description: 'client_id and client_secret of a registered client' },
  resource_server: { type: 'http', scheme: 'basic', description: 'id and secret of a registered resource server' },
};

/** Its other fields are those of OpenAPI too. */
export interface Operation extends Schema {
  tags: string[];
  security: Schema[];
  responses: Record<string, Schema>;
}

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const MERGE_PATCH_TYPE = 'application/merge-patch+json';
const EMPTY_OBJECT: Schema = { type: 'object', additionalProperties: false };
const REDIRECT = `${EXAMPLE.redirectUri}?code=${encodeURIComponent(EXAMPLE.authorizationCode)}`;
const reflector = new Reflector();

export function operationOf(route: Route, grants: RegisteredGrant[]): Operation {
  const { path, handler, description: texts } = route;
  const { summary, description, query, response } = texts;
  const token = reflector.get(TokenRoute, handler);
  const routeGrants = token && grantsOf(token, grants);
  const errors = errorCodesOf(route, token, routeGrants);
  return {
    operationId: operationIdOf(route),
    summary,
    description: [description, errorSentence(errors)].join('\n\n').trim(),
    tags: [tagOf(path)],
    security: securityOf(route, routeGrants),
    parameters: [
      ...pathParameters(route),
      ...(query ? queryParameters(schemaOf(query)) : []),
      ...headersOf(texts.requestHeaders, { in: 'header', required: false }),
    ],
    ...(token && routeGrants
      ? { requestBody: grantRequestBody(token, routeGrants) }
      : texts.body && { requestBody: requestBody(route) }),
    responses: {
      ...successResponses(route, grants, routeGrants),
      ...errorResponsesOf(errors, response === 'text/html'),
    },
  };
}

function grantsOf({ group, grantType }: TokenRouteOptions, grants: RegisteredGrant[]): RegisteredGrant[] {
  if (grantType) return grants.filter(({ name }) => name === grantType);
  return group ? grants.filter(({ groups }) => groups) : grants;
}

function requestBody({ method, description }: Route): Schema {
  const classes = [description.body ?? []].flat();
  const formats = description.bodyFormats ?? ['json'];
  const isPatch = method === 'patch';
  const schemas = classes.map(isPatch ? patchOf : schemaOf);
  const schema = oneOf(schemas);
  const required = isPatch || isAnyRequired(schema);
  if (!formats.includes('json')) return { required, content: { [FORM_TYPE]: { schema } } };
  return {
    required,
    content: {
      ...(isPatch && { [MERGE_PATCH_TYPE]: { schema } }),
      ...contents(schema, formats.includes('form') ? schema : undefined),
    },
  };
}

function grantRequestBody(token: TokenRouteOptions, grants: RegisteredGrant[]): Schema {
  const withForm = grants.filter(({ form }) => form);
  const form = withForm.length > 0 ? grantBodies(withForm, token) : undefined;
  return { required: true, content: contents(grantBodies(grants, token), form) };
}

function contents(json: Schema, form: Schema | undefined): Schema {
  return { [JSON_TYPE]: { schema: json }, ...(form && { [FORM_TYPE]: { schema: form } }) };
}

function isAnyRequired({ required, oneOf: alternatives }: Schema): boolean {
  return alternatives !== undefined || (Array.isArray(required) && required.length > 0);
}

function successResponses(
  { status, description: { response, otherResponse, responseHeaders, redirects, withGrantClaims, mayCreate } }: Route,
  all: RegisteredGrant[],
  grants?: RegisteredGrant[],
): Record<string, Schema> {
  const redirect = {
    description: 'Redirect to the application.',
    headers: { Location: { description: 'The URL to open.', schema: { type: 'string' }, example: REDIRECT } },
  };
  const redirection = redirects && { 302: redirect };
  const headers = Object.fromEntries(headersOf(responseHeaders).map(({ name, ...header }) => [name, header]));
  const withHeaders = responseHeaders && { headers };
  const success = (description: string, schema: Schema, type = JSON_TYPE) => ({
    [status]: { description, ...withHeaders, content: { [type]: { schema } } },
    ...(mayCreate && { 201: { description: 'Created.', ...withHeaders, content: { [type]: { schema } } } }),
    ...redirection,
  });
  if (hasNoContent(status))
    return { [status]: { description: 'Success. The response has no content.' }, ...redirection };
  if (grants) return success('The customer access token.', anyOf(grants.map(grantResponse)));
  if (response === undefined) return success('Success. The response is an empty object.', EMPTY_OBJECT);
  if (typeof response === 'string') return success('Success.', {}, response);
  const schema = responseSchemaOf(response, withGrantClaims ? claimProperties(all) : {});
  return success('Success.', otherResponse ? oneOf([schema, responseSchemaOf(otherResponse)]) : schema);
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
  return names.map((name) => ({ name, in: 'path', required: true, ...texts[name], schema: { type: 'string' } }));
}

function headersOf(texts: ApiRouteDescription['requestHeaders'] = {}, more: Schema = {}): Schema[] {
  return Object.entries(texts).map(([name, text]) => ({ name, ...more, ...text, schema: { type: 'string' } }));
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
