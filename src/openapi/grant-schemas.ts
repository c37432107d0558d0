import type { RegisteredGrant } from '../token/grant-registry.js';
import { ownFields, TokenResponse } from '../token/token-response.js';
import type { TokenRouteKind } from '../token/token-route.js';
import { type ObjectSchema, oneOf, responseSchemaOf, type Schema, schemaOf, without } from './schemas.js';

/** A component for each grant: the schema of its parameters at `POST /v2/customer/token`. */
export function grantComponents(grants: RegisteredGrant[]): Record<string, Schema> {
  return Object.fromEntries(grants.map((grant) => [componentOf(grant), grantBody(grant, 'token')]));
}

/** The schema of a request body for one of several grants. */
export function grantBodies(grants: RegisteredGrant[], kind: TokenRouteKind): Schema {
  if (kind !== 'token') return oneOf(grants.map((grant) => grantBody(grant, kind)));
  const references = grants.map((grant): [string, string] => [
    grant.name,
    `#/components/schemas/${componentOf(grant)}`,
  ]);
  return {
    oneOf: references.map(([, $ref]) => ({ $ref })),
    discriminator: { propertyName: 'grant_type', mapping: Object.fromEntries(references) },
  };
}

/** The key of a grant's component. The characters of a URI that a key may not have are replaced. */
function componentOf({ name }: RegisteredGrant): string {
  return `grant.${name.replace(/[^a-zA-Z0-9._-]/g, '-')}`;
}

/** The schema of a grant's parameters, from the class that validates them. */
function grantBody({ name, body }: RegisteredGrant, kind: TokenRouteKind): ObjectSchema {
  const schema = { title: name, ...schemaOf(body) };
  if (kind === 'fixed-grant') return without(schema, 'grant_type');
  const named = { ...schema, properties: { ...schema.properties, grant_type: { const: name } } };
  if (kind === 'token') return named;
  return { ...named, required: (named.required ?? []).filter((each) => each !== 'organization_id') };
}

/** The schemas of the claims that grants declare, by the names of the claims. */
export function claimProperties(grants: RegisteredGrant[]): Record<string, Schema> {
  return Object.assign({}, ...grants.map(({ claims }) => (claims ? schemaOf(claims).properties : {})));
}

/** The schema of a grant's response: the fields of every token response, and the fields in `responds`. */
export function grantResponse(grant: RegisteredGrant): ObjectSchema {
  const { properties, ...schema } = responseSchemaOf(TokenResponse);
  const responds = grant.responds ?? [];
  const filledIn = responds.filter((field) => !ownFields(grant).includes(field));
  const added = [
    ...filledIn.map((field): [string, Schema] => [field, { type: 'string' }]),
    ...[...ownFields(grant), ...(grant.mayRespond ?? [])].map((field): [string, Schema] => [field, {}]),
  ];
  return {
    title: grant.name,
    ...schema,
    properties: { ...properties, ...Object.fromEntries(added) },
    required: [...(schema.required ?? []), ...filledIn],
  };
}
