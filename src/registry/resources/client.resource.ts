import { applyDecorators } from '@nestjs/common';
import { IsArray, IsBoolean, IsIn, IsInt, IsISO8601, IsObject, IsOptional, IsString, Max, Min } from 'class-validator';
import { MAX_ACCESS_TOKEN_TTL_SECONDS } from '../../platform/configuration/configuration.js';
import { ClientApplication, type ClientType } from '../client-application.entity.js';
import type { GrantSettings } from '../organization.entity.js';
import { lastSecretEnd, NO_PREVIOUS_SECRETS } from '../previous-secrets.js';
import { AreOrigins, AreRedirectUris, AreScopes, IsIdentifier, IsName, IsSecret, IsUuid } from './entry-rules.js';
import { organizationResource } from './organization.resource.js';
import { defineResource } from './registry-resource.js';
import { RANDOM_SECRET } from './secret-kinds.js';

class ClientEntry {
  @IsIdentifier()
  client_id: string;

  @IsName()
  name: string;

  @IsIn(['web', 'server', 'native'])
  client_type: ClientType;

  @IsOptional()
  @IsUuid()
  organization_id?: string;

  @IsOptional()
  @IsSecret()
  client_secret?: string;

  @IsOptional()
  @AreRedirectUris()
  redirect_uris: string[] = [];

  @IsOptional()
  @IsIn(['exact', 'prefix'])
  redirect_uri_match: 'exact' | 'prefix' = 'exact';

  @IsOptional()
  @AreOrigins()
  origins: string[] = [];

  @IsOptional()
  @IsArray()
  @IsString({ each: true })
  grant_types?: string[];

  @IsOptional()
  @AreScopes()
  scopes: string[] = [];

  @IsOptional()
  @IsObject()
  grants: GrantSettings = {};

  /** If omitted: CUSTOMER_TOKEN_TTL. */
  @IsOptional()
  @IsInt()
  @Min(60)
  @Max(MAX_ACCESS_TOKEN_TTL_SECONDS)
  customer_token_ttl?: number;
}

export const clientResource = defineResource<ClientEntry, ClientApplication>({
  noun: 'client',
  auditKind: 'client',
  list: 'clients',
  path: 'clients',
  entry: ClientEntry,
  entity: ClientApplication,
  key: { field: 'client_id', column: 'clientId' },
  grantSettings: 'grants',
  grantTypes: 'grant_types',
  references: [{ field: 'organization_id', column: 'organizationId', resource: organizationResource }],
  secret: {
    field: 'client_secret',
    column: 'secretHash',
    kind: RANDOM_SECRET,
    columns: (secretHash) => ({ secretHash, ...NO_PREVIOUS_SECRETS }),
    isRequired: false,
  },
  responseFields: {
    rules: { has_secret: IsBoolean(), previous_secret_expires_at: applyDecorators(IsOptional(), IsISO8601()) },
    of(client, now) {
      const end = lastSecretEnd(client, now);
      return { has_secret: client.secretHash !== null, ...(end !== undefined && { previous_secret_expires_at: end }) };
    },
  },
  retainedFields: { client_secret: { secretHash: null, ...NO_PREVIOUS_SECRETS } },
  toRow: (entry, secret) => ({
    clientId: entry.client_id,
    name: entry.name,
    clientType: entry.client_type,
    organizationId: entry.organization_id ?? null,
    ...secret,
    redirectUris: entry.redirect_uris,
    redirectUriMatch: entry.redirect_uri_match,
    origins: entry.origins,
    grantTypes: entry.grant_types ?? null,
    scopes: entry.scopes,
    grants: entry.grants,
    customerTokenTtl: entry.customer_token_ttl ?? null,
  }),
  toEntry: (client) => ({
    client_id: client.clientId,
    name: client.name,
    client_type: client.clientType,
    ...(client.organizationId !== null && { organization_id: client.organizationId }),
    redirect_uris: client.redirectUris,
    redirect_uri_match: client.redirectUriMatch,
    origins: client.origins,
    ...(client.grantTypes !== null && { grant_types: client.grantTypes }),
    scopes: client.scopes,
    grants: client.grants,
    ...(client.customerTokenTtl !== null && { customer_token_ttl: client.customerTokenTtl }),
  }),
});
