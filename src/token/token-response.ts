import { IsIn, IsInt, IsString } from 'class-validator';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-property.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { GrantResult } from './grant.js';
import type { RegisteredGrant } from './grant-registry.js';
import type { GrantMetadata } from './grant-type.decorator.js';

/** The token response (protocol §4.9). A response also has the fields that the grant declares in `responds`. */
export class TokenResponse {
  @IsString()
  @ApiProperty('The customer access token. Send it as `Authorization: Bearer`, with its prefix.', EXAMPLE.accessToken)
  access_token: string;

  @IsString()
  @ApiProperty('The id of the customer. It never changes, and no other customer ever gets it.', EXAMPLE.entityId)
  entity_id: string;

  @IsInt()
  @ApiProperty('The seconds until the access token expires.', 28_800)
  expires_in: number;

  @IsIn(['Bearer'])
  @ApiProperty('How to send the access token (RFC 6750).', 'Bearer')
  token_type: 'Bearer';

  /** Fields that the grant adds. */
  [field: string]: unknown;
}

/** Fields that several grants add to the token response, for the OpenAPI document. */
export class OptionalTokenFields {
  @IsString()
  @ApiProperty('The client that the token was issued for.', EXAMPLE.clientId)
  client_id: string;

  @IsString()
  @ApiProperty('The organization that the token was issued for.', EXAMPLE.organizationId)
  organization_id: string;

  @IsString()
  @ApiProperty('Gets the next access token by the grant `refresh_token`. Each use replaces it.', EXAMPLE.refreshToken)
  refresh_token: string;
}

/** Declared fields that the endpoint fills in. The grant fills in every other field that it declares in `responds`. */
const FILLED_IN_BY_ENDPOINT = new Set(['client_id', 'organization_id']);

/** The fields of the response that the grant itself fills in. */
export function ownFields({ responds = [] }: GrantMetadata): string[] {
  return responds.filter((field) => !FILLED_IN_BY_ENDPOINT.has(field));
}

/** The response to a successful request, with the fields that the grant declares in `responds`. */
export function tokenResponse(
  grant: RegisteredGrant,
  client: ClientApplication,
  granted: GrantResult,
  token: { value: string; ttlSeconds: number },
): TokenResponse {
  const { entityId, organizationId } = granted;
  const response: TokenResponse = {
    access_token: token.value,
    entity_id: entityId,
    expires_in: token.ttlSeconds,
    token_type: 'Bearer',
  };
  if (grant.responds?.includes('client_id')) response.client_id = client.clientId;
  if (grant.responds?.includes('organization_id')) response.organization_id = organizationId;
  for (const field of [...ownFields(grant), ...(grant.mayRespond ?? [])]) response[field] = granted.response?.[field];
  if (grant.refreshTokens && granted.refreshToken !== undefined) response.refresh_token = granted.refreshToken;
  return response;
}
