import { Reflector } from '@nestjs/core';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiEnum, ApiInteger, ApiString } from '../platform/validation/validation.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { GrantMetadata, GrantResult } from './grant.js';

/** The token response (protocol §4.9). A response also has the fields that the grant declares in `responds`. */
export class TokenResponse {
  @ApiString('The customer access token. Send it as `Authorization: Bearer`, with its prefix.', EXAMPLE.accessToken)
  access_token!: string;

  @ApiString('The id of the customer. It never changes, and no other customer ever gets it.', EXAMPLE.entityId)
  entity_id!: string;

  @ApiInteger('The seconds until the access token expires.', 28_800)
  expires_in!: number;

  @ApiEnum(['Bearer'], 'How to send the access token (RFC 6750).')
  token_type!: 'Bearer';

  [field: string]: unknown;
}

/** Fields that several grants add to the token response, for the OpenAPI document. */
export class OptionalTokenFields {
  @ApiString('The client that the token was issued for.', EXAMPLE.clientId)
  client_id!: string;

  @ApiString('The organization that the token was issued for.', EXAMPLE.organizationId)
  organization_id!: string;

  @ApiString('Gets the next access token by the grant `refresh_token`. Each use replaces it.', EXAMPLE.refreshToken)
  refresh_token!: string;
}

/** What distinguishes a route that issues customer tokens from `POST /v2/customer/token`. */
export interface TokenRouteOptions {
  group?: boolean;
  /** The only grant of the route. Its requests have no `grant_type`. */
  grantType?: string;
}

/** Marks a route that issues customer tokens by the registered grants, for the OpenAPI document. */
export const TokenRoute = Reflector.createDecorator<TokenRouteOptions>();

/** Declared fields that the endpoint fills in. The grant fills in every other field that it declares in `responds`. */
const FILLED_IN_BY_ENDPOINT = new Set(['client_id', 'organization_id']);

export function ownFields({ responds = [] }: GrantMetadata): string[] {
  return responds.filter((field) => !FILLED_IN_BY_ENDPOINT.has(field));
}

export function tokenResponse(
  grant: GrantMetadata,
  { clientId }: ClientApplication,
  { entityId: entity_id, organizationId, response: values, refreshToken }: GrantResult,
  { token, ttlSeconds }: { token: string; ttlSeconds: number },
): TokenResponse {
  const response: TokenResponse = { access_token: token, entity_id, expires_in: ttlSeconds, token_type: 'Bearer' };
  if (grant.responds?.includes('client_id')) response.client_id = clientId;
  if (grant.responds?.includes('organization_id')) response.organization_id = organizationId;
  for (const field of [...ownFields(grant), ...(grant.mayRespond ?? [])]) response[field] = values?.[field];
  if (grant.refreshTokens && refreshToken !== undefined) response.refresh_token = refreshToken;
  return response;
}
