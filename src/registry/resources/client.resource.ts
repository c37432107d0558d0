import { applyDecorators } from '@nestjs/common';
import { IsArray, IsBoolean, IsInt, IsISO8601, IsObject, IsOptional, IsString, Max, Min } from 'class-validator';
import { IsUuid, OneOf } from '../../oauth/parameters.js';
import { MAX_ACCESS_TOKEN_TTL_SECONDS } from '../../platform/configuration/configuration.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { ClientApplication, type ClientType } from '../client-application.entity.js';
import type { GrantSettings } from '../organization.entity.js';
import { secretEnds } from '../previous-secrets.js';
import { AreOrigins, AreRedirectUris, AreScopes, IsIdentifier, IsName, Secret } from './entry-rules.js';
import { organizationResource } from './organization.resource.js';
import { defineResource, RANDOM_SECRET } from './registry-resource.js';

class ClientEntry {
  @IsIdentifier()
  @ApiProperty(
    'The id of the client. It has 1 to 128 characters: letters, digits, `.`, `_`, `~` and `-`.',
    EXAMPLE.serverClientId,
  )
  client_id!: string;

  @IsName()
  @ApiProperty('The name of the client. The authorization page shows it.', 'Acme backend')
  name!: string;

  @OneOf(['web', 'server', 'native'], '`web` runs in browsers, `server` on servers, `native` on devices.', 'server')
  client_type!: ClientType;

  @IsOptional()
  @IsUuid()
  @ApiProperty(
    'The organization that the client belongs to. A client without one is public: organizations choose whether to admit it.',
    EXAMPLE.organizationId,
  )
  organization_id?: string;

  @Secret()
  client_secret?: string;

  @IsOptional()
  @AreRedirectUris()
  @ApiProperty('The URLs to which the authorization page may redirect. Their origins are origins of the client.', [
    EXAMPLE.redirectUri,
  ])
  redirect_uris: string[] = [];

  @IsOptional()
  @OneOf(['exact', 'prefix'], '`exact` if omitted. `prefix` also admits URLs below a redirect URI for customer grants.')
  redirect_uri_match: 'exact' | 'prefix' = 'exact';

  @IsOptional()
  @AreOrigins()
  @ApiProperty('Further origins of pages that may call the service.', [EXAMPLE.origin])
  origins: string[] = [];

  @IsOptional()
  @IsArray()
  @IsString({ each: true })
  @ApiProperty('The customer grants that the client may use. If omitted, all except those that a client must list.', [
    'agent_token',
  ])
  grant_types?: string[];

  @IsOptional()
  @AreScopes()
  @ApiProperty('The scopes that the client may request from agents.', [EXAMPLE.scope])
  scopes: string[] = [];

  @IsOptional()
  @IsObject()
  @ApiProperty('Settings of grants for this client, by the names of the grants.', {
    identity_token: { remember: ['browser'] },
  })
  grants: GrantSettings = {};

  @IsOptional()
  @IsInt()
  @Min(60)
  @Max(MAX_ACCESS_TOKEN_TTL_SECONDS)
  @ApiProperty('The lifetime of customer tokens of this client in seconds. If omitted: `CUSTOMER_TOKEN_TTL`.', 3_600)
  customer_token_ttl?: number;

  @IsOptional()
  @IsBoolean()
  @ApiProperty(
    'Whether requests of the client are refused and its tokens end. `false` for a new entry. If omitted, it stays as it is.',
    false,
  )
  suspended?: boolean;
}

export const clientResource = defineResource<ClientEntry, ClientApplication>({
  noun: 'client',
  entry: ClientEntry,
  entity: ClientApplication,
  key: { field: 'client_id', column: 'clientId' },
  grantSettings: 'grants',
  grantTypes: 'grant_types',
  references: [{ field: 'organization_id', column: 'organizationId', resource: organizationResource }],
  exampleFields: ['organization_id', 'client_secret', 'redirect_uris', 'scopes'],
  exampleChange: 'name',
  secret: {
    field: 'client_secret',
    column: 'secretHash',
    kind: RANDOM_SECRET,
    // the operator chose the secret: the secret in use and all earlier secrets end immediately
    alsoSets: { previousSecrets: null },
    isRequired: false,
  },
  responseFields: {
    rules: {
      has_secret: applyDecorators(IsBoolean(), ApiProperty('Whether the client has a secret.', true)),
      previous_secret_expires_at: applyDecorators(
        IsOptional(),
        IsISO8601(),
        ApiProperty('When the last replaced secret stops working; absent if none is valid.', EXAMPLE.laterTime),
      ),
    },
    of(client, now) {
      const end = secretEnds(client.previousSecrets, now).at(-1);
      return { has_secret: client.secretHash !== null, ...(end !== undefined && { previous_secret_expires_at: end }) };
    },
  },
  tokensEndWith: {},
  retainsKey: 'its id is free when the purge has deleted its codes and refresh tokens, a day later at the earliest',
  retainedFields: { client_secret: { secretHash: null, previousSecrets: null }, suspended: { suspended: false } },
});
