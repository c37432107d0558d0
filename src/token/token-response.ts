import { IsIn, IsInt, IsString } from 'class-validator';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { GrantMetadata, GrantResult } from './grant.js';
import type { RegisteredGrant } from './grant-registry.js';

/** The token response (protocol §4.9). A response also has the fields that the grant declares in `responds`. */
export class TokenResponse {
  @IsString()
  access_token: string;

  @IsString()
  entity_id: string;

  /** In seconds. */
  @IsInt()
  expires_in: number;

  @IsIn(['Bearer'])
  token_type: 'Bearer';

  /** Fields that the grant adds. */
  [field: string]: unknown;
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
  return response;
}
