import type { RegisteredGrant } from '../../token/grant-registry.js';
import { OptionalTokenFields, ownFields, TokenResponse, type TokenRouteOptions } from '../../token/token-response.js';
import { type ObjectSchema, oneOf, responseSchemaOf, type Schema, schemaOf, without } from './schemas.js';

export function grantComponents(grants: RegisteredGrant[]): Record<string, Schema> {
  return Object.fromEntries(grants.map((grant) => [componentOf(grant), grantBody(grant, {})]));
}

export function grantBodies(grants: RegisteredGrant[], route: TokenRouteOptions): Schema {
  if (route.group || route.grantType) return oneOf(grants.map((grant) => grantBody(grant, route)));
  const references = grants.map((grant) => [grant.name, `#/components/schemas/${componentOf(grant)}`] as const);
  return {
    oneOf: references.map(([, $ref]) => ({ $ref })),
    discriminator: { propertyName: 'grant_type', mapping: Object.fromEntries(references) },
  };
}

/** A key has fewer characters than a URI. */
function componentOf({ name }: RegisteredGrant): string {
  return `grant.${name.replace(/[^a-zA-Z0-9._-]/g, '-')}`;
}

/** The parameters of every grant come first. */
function grantBody({ name, body, api }: RegisteredGrant, { group, grantType }: TokenRouteOptions): ObjectSchema {
  const { properties, ...schema } = schemaOf(body);
  const { grant_type, client_id, ...others } = properties;
  const title = { title: name, ...(api && { description: api.description }) };
  const common = { grant_type: { description: grant_type?.description, const: name }, client_id: client_id ?? {} };
  const named = { ...title, ...schema, properties: { ...common, ...others } };
  if (grantType) return without(named, 'grant_type');
  if (!group) return named;
  return { ...named, required: (named.required ?? []).filter((each) => each !== 'organization_id') };
}

export function claimProperties(grants: RegisteredGrant[]): Record<string, Schema> {
  return Object.assign({}, ...grants.map(({ claims }) => (claims ? schemaOf(claims).properties : {})));
}

/** The schema of a grant's response: the fields of every token response, those in `responds`, and the refresh token. */
export function grantResponse(grant: RegisteredGrant): ObjectSchema {
  const { properties, ...schema } = responseSchemaOf(TokenResponse);
  const optional = schemaOf(OptionalTokenFields).properties;
  const described = { ...optional, ...(grant.api?.response && schemaOf(grant.api.response).properties) };
  const responds = grant.responds ?? [];
  const filledIn = responds.filter((field) => !ownFields(grant).includes(field));
  const names = [
    ...filledIn,
    ...(grant.refreshTokens ? ['refresh_token'] : []),
    ...ownFields(grant),
    ...(grant.mayRespond ?? []),
  ];
  const added = Object.fromEntries(names.map((field) => [field, described[field] ?? {}]));
  return {
    title: grant.name,
    ...schema,
    properties: { ...properties, ...added },
    required: [...(schema.required ?? []), ...filledIn],
  };
}
