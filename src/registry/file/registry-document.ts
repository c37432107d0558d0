import { Type } from 'class-transformer';
import {
  IsArray,
  IsBoolean,
  IsEmail,
  IsIn,
  IsObject,
  IsOptional,
  IsString,
  Length,
  Matches,
  ValidateBy,
  ValidateNested,
} from 'class-validator';
import { UUID } from '../../platform/uuid.js';
import type { ClientType } from '../client-application.entity.js';
import type { GrantSettings } from '../organization.entity.js';
import { isOrigin, isRegistrableRedirectUri } from '../redirect-uri.js';

/** A client id as RFC 6749 appendix A.1 has it (VSCHAR), without spaces, quotes and colons. */
const IDENTIFIER = /^[A-Za-z0-9._~-]{1,128}$/;
/** One scope token (RFC 6749 section 3.3). */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,100}$/;

const Each = (type: () => new () => object): PropertyDecorator =>
  decorateAll(IsArray(), ValidateNested({ each: true }), Type(type));
const IsUuid = () => Matches(UUID, { message: 'must be a UUID in lower case' });
const IsIdentifier = () => Matches(IDENTIFIER, { message: 'must be 1 to 128 letters, digits or . _ ~ -' });
const AreScopes = () => decorateAll(IsArray(), Matches(SCOPE, { each: true, message: 'each must be a scope token' }));
const AreOrigins = () =>
  decorateAll(
    IsArray(),
    satisfies('areOrigins', (values) => values.every(isOrigin), 'each must be an origin: scheme, host and port'),
  );

/** `redirect_uris`, whose rule depends on the type of the client beside it. */
const AreRedirectUris = () =>
  decorateAll(
    IsArray(),
    satisfies(
      'areRedirectUris',
      (uris, client) => uris.every((uri) => isRegistrableRedirectUri(uri, client.client_type === 'native')),
      'each must be an absolute http(s) URL without fragment',
    ),
  );

export class License {
  @IsOptional()
  @IsBoolean()
  chat_between_groups = true;
}

export class OrganizationEntry {
  @IsUuid()
  id: string;

  @IsString()
  @Length(1, 200)
  name: string;

  @IsOptional()
  @IsObject()
  @ValidateNested()
  @Type(() => License)
  license = new License();

  @IsOptional()
  @IsObject()
  grants: GrantSettings = {};
}

export class ClientEntry {
  @IsIdentifier()
  client_id: string;

  @IsString()
  @Length(1, 200)
  name: string;

  @IsIn(['web', 'server', 'native'])
  client_type: ClientType;

  @IsOptional()
  @IsUuid()
  organization_id?: string;

  @IsOptional()
  @IsString()
  @Length(1, 256)
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
  @IsString()
  @Length(1, 256)
  secret?: string;

  @IsArray()
  @IsString({ each: true })
  audiences: string[];
}

export class AgentEntry {
  @IsEmail({ require_tld: false })
  @Length(3, 254)
  email: string;

  @IsString()
  @Length(1, 200)
  name: string;

  @IsOptional()
  @IsString()
  @Length(1, 1024)
  password?: string;

  @IsUuid()
  organization_id: string;

  @IsOptional()
  @AreScopes()
  scopes: string[] = [];
}

/** The registry as its YAML file writes it (contract, section 2). */
export class RegistryDocument {
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

function decorateAll(...decorators: PropertyDecorator[]): PropertyDecorator {
  return (target, name) => {
    for (const decorate of decorators) decorate(target, name);
  };
}

function satisfies(
  name: string,
  rule: (values: string[], entry: ClientEntry) => boolean,
  message: string,
): PropertyDecorator {
  const validate = (values: unknown, context?: { object: object }) =>
    Array.isArray(values) &&
    values.every((value) => typeof value === 'string') &&
    rule(values, context?.object as ClientEntry);
  return ValidateBy({ name, validator: { validate, defaultMessage: () => message } });
}
