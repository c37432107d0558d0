import { Get, Header, Req } from '@nestjs/common';
import { IsBoolean } from 'class-validator';
import type { Request } from 'express';
import { ASSERTION_ALGORITHMS } from '../../oauth/foreign-jwts.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { ApiProperty, ApiRoute } from '../../platform/http/api-route.js';
import { ManagementController, PublicController } from '../../platform/http/listener.decorators.js';
import { ApiOptionalString, ApiString, ApiStringArray, Optional } from '../../platform/validation/validation.js';

const AUTHENTICATION_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt'];

class ServerMetadata {
  @ApiString('The `iss` of all tokens of this service.', 'https://auth.example')
  issuer!: string;

  @ApiString('The page that signs agents in.', 'https://auth.example/')
  authorization_endpoint!: string;

  @ApiString('The token endpoint of agents.', 'https://auth.example/v2/token')
  token_endpoint!: string;

  @ApiString('The public keys that verify tokens.', 'https://auth.example/.well-known/jwks.json')
  jwks_uri!: string;

  @ApiStringArray('The values of `response_type`.', ['code', 'token'])
  response_types_supported!: string[];

  @ApiStringArray('Where the redirect has its parameters.', ['query', 'fragment'])
  response_modes_supported!: string[];

  @ApiStringArray('The grants of agents. Customers use other grants.', [
    'authorization_code',
    'client_credentials',
    'implicit',
    'refresh_token',
  ])
  grant_types_supported!: string[];

  @ApiStringArray('How clients authenticate at the token endpoint.', [
    'client_secret_basic',
    'client_secret_post',
    'private_key_jwt',
    'none',
  ])
  token_endpoint_auth_methods_supported!: string[];

  @ApiStringArray('The algorithms of assertions there.', ASSERTION_ALGORITHMS)
  token_endpoint_auth_signing_alg_values_supported!: string[];

  @ApiStringArray('The methods of PKCE (RFC 7636).', ['S256'])
  code_challenge_methods_supported!: string[];

  @IsBoolean()
  @ApiProperty('Whether the redirect has the parameter `iss` (RFC 9207).', true)
  authorization_response_iss_parameter_supported!: boolean;
}

class ClusterMetadata extends ServerMetadata {
  @ApiOptionalString('Where services ask whether a token is valid.', 'http://auth.internal:3001/oauth2/introspect')
  introspection_endpoint?: string;

  @Optional()
  @ApiStringArray('How resource servers authenticate there.', AUTHENTICATION_METHODS)
  introspection_endpoint_auth_methods_supported?: string[];

  @Optional()
  @ApiStringArray('The algorithms of assertions there.', ASSERTION_ALGORITHMS)
  introspection_endpoint_auth_signing_alg_values_supported?: string[];

  @ApiOptionalString('Where clients end their tokens.', 'http://auth.internal:3001/oauth2/revoke')
  revocation_endpoint?: string;

  @Optional()
  @ApiStringArray('How clients authenticate there.', AUTHENTICATION_METHODS)
  revocation_endpoint_auth_methods_supported?: string[];

  @Optional()
  @ApiStringArray('The algorithms of assertions there.', ASSERTION_ALGORITHMS)
  revocation_endpoint_auth_signing_alg_values_supported?: string[];
}

const PATH = '.well-known/oauth-authorization-server';

/** The server metadata that client libraries read (RFC 8414). */
@PublicController(PATH)
export class ServerMetadataController {
  constructor(private readonly configuration: Configuration) {}

  @Get()
  @ApiRoute({
    summary: 'Get the authorization server metadata (RFC 8414)',
    description: 'Client libraries configure themselves with this document. It describes the endpoints of agents.',
    response: ServerMetadata,
  })
  @Header('Cache-Control', 'public, max-age=300')
  @Header('Access-Control-Allow-Origin', '*')
  metadata(): ServerMetadata {
    return metadataOf(this.configuration);
  }
}

/** The URLs have the host of the request: the process does not know its name in the cluster (decision 0031). */
@ManagementController(PATH)
export class ClusterMetadataController {
  constructor(private readonly configuration: Configuration) {}

  @Get()
  @ApiRoute({
    summary: 'Get the authorization server metadata (RFC 8414)',
    description: 'The same document as on the public port, and the endpoints for services in the cluster.',
    response: ClusterMetadata,
  })
  metadata(@Req() { protocol, headers: { host } }: Request): ClusterMetadata {
    const metadata = metadataOf(this.configuration);
    if (!host) return metadata; // HTTP/1.0 does not require a host
    return {
      ...metadata,
      introspection_endpoint: `${protocol}://${host}/oauth2/introspect`,
      introspection_endpoint_auth_methods_supported: AUTHENTICATION_METHODS,
      introspection_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
      revocation_endpoint: `${protocol}://${host}/oauth2/revoke`,
      revocation_endpoint_auth_methods_supported: AUTHENTICATION_METHODS,
      revocation_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
    };
  }
}

function metadataOf({ AUTH_URL }: Configuration): ServerMetadata {
  return {
    issuer: AUTH_URL,
    authorization_endpoint: `${AUTH_URL}/`,
    token_endpoint: `${AUTH_URL}/v2/token`,
    jwks_uri: `${AUTH_URL}/.well-known/jwks.json`,
    response_types_supported: ['code', 'token'],
    response_modes_supported: ['query', 'fragment'],
    grant_types_supported: ['authorization_code', 'client_credentials', 'implicit', 'refresh_token'],
    token_endpoint_auth_methods_supported: [...AUTHENTICATION_METHODS, 'none'],
    token_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
  };
}
