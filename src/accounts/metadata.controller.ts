import { Get, Header } from '@nestjs/common';
import { Configuration } from '../platform/configuration/configuration.js';
import { PublicController } from '../platform/http/surfaces.js';

/** What this authorization server can do, for client libraries (RFC 8414). */
@PublicController('.well-known/oauth-authorization-server')
export class MetadataController {
  constructor(private readonly configuration: Configuration) {}

  @Get()
  @Header('Cache-Control', 'public, max-age=300')
  @Header('Access-Control-Allow-Origin', '*')
  metadata(): Record<string, unknown> {
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
