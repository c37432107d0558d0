import type { RegisteredGrant } from '../token/grant-registry.js';
import { ownFields, TokenResponse } from '../token/token-response.js';
import type { TokenRouteKind } from '../token/token-route.js';
import { type ObjectSchema, oneOf, responseSchemaOf, type Schema, schemaOf, without } from './schemas.js';

/** The parameters of each grant at the token address, for the components of the document. */
export function grantComponents(grants: RegisteredGrant[]): Record<string, Schema> {
  return Object.fromEntries(grants.map((grant) => [componentOf(grant), grantBody(grant, 'token')]));
}

/** What may be sent to ask for one of these grants. */
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

/** The key of a grant's component; a URI has characters that a key may not have. */
function componentOf({ name }: RegisteredGrant): string {
  return `grant.${name.replace(/[^a-zA-Z0-9._-]/g, '-')}`;
}

/** The parameters of a grant, by the class that validates them. */
function grantBody({ name, body }: RegisteredGrant, kind: TokenRouteKind): ObjectSchema {
  const schema = { title: name, ...schemaOf(body) };
  if (kind === 'fixed-grant') return without(schema, 'grant_type');
  const named = { ...schema, properties: { ...schema.properties, grant_type: { const: name } } };
  if (kind === 'token') return named;
  return { ...named, required: (named.required ?? []).filter((each) => each !== 'organization_id') };
}

/** The answer of a grant: that of every grant, and what the grant declares to respond with. */
export function grantResponse(grant: RegisteredGrant): ObjectSchema {
  const { properties, ...schema } = responseSchemaOf(TokenResponse);
  const responds = grant.responds ?? [];
  const filledIn = responds.filter((field) => !ownFields(grant).includes(field));
  const added = [
    ...filledIn.map((field): [string, Schema] => [field, { type: 'string' }]),
    ...ownFields(grant).map((field): [string, Schema] => [field, {}]),
  ];
  return {
    title: grant.name,
    ...schema,
    properties: { ...properties, ...Object.fromEntries(added) },
    required: [...(schema.required ?? []), ...filledIn],
  };
}
