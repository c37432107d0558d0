import { IsArray, IsEmail, IsIn, IsInt, IsObject, IsOptional, IsString, Max, Min } from 'class-validator';
import type { ClientType } from '../client-application.entity.js';
import type { GrantSettings } from '../organization.entity.js';
import {
  AreOrigins,
  AreRedirectUris,
  AreScopes,
  Each,
  FitsLowered,
  IsIdentifier,
  IsName,
  IsPassword,
  IsSecret,
  IsUuid,
} from './entry-rules.js';
import { OrganizationEntry } from './organization-entry.js';

/** As an `INT` of MySQL. */
const MAX_REVISION = 2_147_483_647;

export class ClientEntry {
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
}

export class ResourceServerEntry {
  @IsIdentifier()
  id: string;

  @IsOptional()
  @IsSecret()
  secret?: string;

  @IsArray()
  @IsString({ each: true })
  audiences: string[];
}

export class AgentEntry {
  @IsEmail({ require_tld: false })
  @FitsLowered(254)
  email: string;

  @IsName()
  name: string;

  @IsOptional()
  @IsPassword()
  password?: string;

  @IsUuid()
  organization_id: string;

  @IsOptional()
  @AreScopes()
  scopes: string[] = [];
}

/** The registry as its YAML file writes it (contract, section 2). */
export class RegistryDocument {
  /** A file with a higher one than any before it is applied, even if its content was replaced before. */
  @IsOptional()
  @IsInt()
  @Min(0)
  @Max(MAX_REVISION)
  revision?: number;

  @IsOptional()
  @Each(() => OrganizationEntry)
  organizations: OrganizationEntry[] = [];

  @IsOptional()
  @Each(() => ClientEntry)
  clients: ClientEntry[] = [];

  @IsOptional()
  @Each(() => ResourceServerEntry)
  resource_servers: ResourceServerEntry[] = [];

  @IsOptional()
  @Each(() => AgentEntry)
  agents: AgentEntry[] = [];
}
