import { Get, Header } from '@nestjs/common';
import { IsBoolean, IsString } from 'class-validator';
import { Configuration } from '../platform/configuration/configuration.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/surfaces.js';

class ServerMetadata {
  @IsString()
  issuer: string;

  @IsString()
  authorization_endpoint: string;

  @IsString()
  token_endpoint: string;

  @IsString()
  jwks_uri: string;

  @IsString({ each: true })
  response_types_supported: string[];

  @IsString({ each: true })
  response_modes_supported: string[];

  @IsString({ each: true })
  grant_types_supported: string[];

  @IsString({ each: true })
  token_endpoint_auth_methods_supported: string[];

  @IsString({ each: true })
  code_challenge_methods_supported: string[];

  @IsBoolean()
  authorization_response_iss_parameter_supported: boolean;
}

/** The server metadata that client libraries read (RFC 8414). */
@PublicController('.well-known/oauth-authorization-server')
export class ServerMetadataController {
  constructor(private readonly configuration: Configuration) {}

  @Get()
  @ApiRoute({ summary: 'Get the authorization server metadata (RFC 8414)', response: ServerMetadata })
  @Header('Cache-Control', 'public, max-age=300')
  @Header('Access-Control-Allow-Origin', '*')
  metadata(): ServerMetadata {
    const { AUTH_URL } = this.configuration;
    return {
      issuer: AUTH_URL,
      authorization_endpoint: `${AUTH_URL}/`,
      token_endpoint: `${AUTH_URL}/v2/token`,
      jwks_uri: `${AUTH_URL}/.well-known/jwks.json`,
      response_types_supported: ['code', 'token'],
      response_modes_supported: ['query', 'fragment'],
      grant_types_supported: ['authorization_code', 'implicit', 'refresh_token'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    };
  }
}
