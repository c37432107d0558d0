import { IsArray, IsBoolean, IsObject, IsOptional, IsString } from 'class-validator';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { sha256 } from '../../platform/secret.js';
import { IsIdentifier, IsUuid } from '../../platform/validation/text-rules.js';
import { ApiEnum } from '../../platform/validation/validation.js';
import { AssertionKeyFields, assertionKeyFields, assertionKeysOf } from '../assertion-keys.js';
import { ClientApplication, type ClientType } from '../client-application.entity.js';
import type { GrantSettings } from '../organization.entity.js';
import type { EntryKind } from './entry-kind.js';
import { ApiSecret, AreOrigins, AreRedirectUris, AreScopes, IsEmailAddress, IsName } from './entry-rules.js';

export class ClientEntry extends AssertionKeyFields {
  @IsIdentifier()
  @ApiProperty(
    'The id of the client. It has 1 to 128 characters: letters, digits, `.`, `_`, `~` and `-`.',
    EXAMPLE.serverClientId,
  )
  client_id!: string;

  @IsName()
  @ApiProperty('The name of the client. The authorization page shows it.', 'Acme backend')
  name!: string;

  @ApiEnum(['web', 'server', 'native'], '`web` runs in browsers, `server` on servers, `native` on devices.', 'server')
  client_type!: ClientType;

  @IsOptional()
  @IsUuid()
  @ApiProperty(
    'The organization that the client belongs to. A client without one is public: organizations choose whether to admit it.',
    EXAMPLE.organizationId,
  )
  organization_id?: string;

  @ApiSecret()
  client_secret?: string;

  @IsOptional()
  @AreRedirectUris()
  @ApiProperty('The URLs to which the authorization page may redirect. Their origins are origins of the client.', [
    EXAMPLE.redirectUri,
  ])
  redirect_uris: string[] = [];

  @IsOptional()
  @ApiEnum(
    ['exact', 'prefix'],
    '`exact` if omitted. `prefix` also admits URLs below a redirect URI for customer grants.',
  )
  redirect_uri_match: 'exact' | 'prefix' = 'exact';

  @IsOptional()
  @AreOrigins()
  @ApiProperty('Further origins of pages that may call the service.', [EXAMPLE.origin])
  origins: string[] = [];

  @IsOptional()
  @IsArray()
  @IsString({ each: true })
  @ApiProperty('The grants that the client may use. If omitted, all except those that a client must list.', [
    'agent_token',
  ])
  grant_types?: string[];

  @IsOptional()
  @AreScopes()
  @ApiProperty('The scopes that the client may request from agents.', [EXAMPLE.scope])
  scopes: string[] = [];

  @IsOptional()
  @IsEmailAddress()
  @ApiProperty(
    'The email of the agent for whom the client gets tokens with the grant `client_credentials`. Absent if this agent was deleted.',
    EXAMPLE.agentEmail,
  )
  agent?: string;

  @IsOptional()
  @IsObject()
  @ApiProperty('Settings of grants for this client, by the names of the grants.', {
    identity_token: { remember: ['browser'] },
  })
  grants: GrantSettings = {};

  @IsOptional()
  @IsBoolean()
  @ApiProperty(
    'Whether requests of the client are refused and its tokens end. `false` for a new entry. If omitted, it stays as it is.',
    false,
  )
  suspended?: boolean;
}

export const CLIENTS: EntryKind<ClientEntry, ClientApplication> = {
  name: 'client',
  entry: ClientEntry,
  entity: ClientApplication,
  key: { field: 'client_id', column: 'clientId' },
  secret: {
    field: 'client_secret',
    column: 'secretHash',
    isRequired: false,
    removed: { secretHash: null, previousSecrets: null },
    /** Another secret, which the operator chose, ends the secret in use and all earlier ones at once. */
    async columnsOf(secret: string, stored?: ClientApplication): Promise<Partial<ClientApplication>> {
      const secretHash = sha256(secret);
      return secretHash === stored?.secretHash ? { secretHash } : { secretHash, previousSecrets: null };
    },
  },

  reference: { field: 'agent', column: 'agentId' },

  toColumns(entry: ClientEntry, stored?: ClientApplication): Partial<ClientApplication> {
    return {
      clientId: entry.client_id,
      name: entry.name,
      clientType: entry.client_type,
      organizationId: entry.organization_id ?? null,
      assertionKeys: assertionKeysOf(entry),
      redirectUris: entry.redirect_uris,
      redirectUriMatch: entry.redirect_uri_match,
      origins: entry.origins,
      grantTypes: entry.grant_types ?? null,
      scopes: entry.scopes,
      grants: entry.grants,
      suspended: entry.suspended ?? stored?.suspended ?? false,
    };
  },

  toEntry(row: ClientApplication): object {
    return {
      client_id: row.clientId,
      name: row.name,
      client_type: row.clientType,
      organization_id: row.organizationId ?? undefined,
      ...assertionKeyFields(row.assertionKeys),
      redirect_uris: row.redirectUris,
      redirect_uri_match: row.redirectUriMatch,
      origins: row.origins,
      grant_types: row.grantTypes ?? undefined,
      scopes: row.scopes,
      agent: row.agent?.email,
      grants: row.grants,
      suspended: row.suspended,
    };
  },
};
