import { HttpCode, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { REQUEST_ERRORS } from '../oauth/request-errors.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import type { ClientCredentials } from '../registry/client-authentication.js';
import { ClientAuthentication } from '../registry/client-authentication.js';
import { IntrospectionResponse, TokenIntrospection } from './token-introspection.js';
import { TokenBody, TokenRequests } from './token-requests.js';
import { TokenRevocation } from './token-revocation.js';

/** The examples of a body, for a caller with this id. */
const tokenExamples = (client_id: string) => ({
  'with the header Authorization': [],
  'with the secret in the body': { token: EXAMPLE.accessToken, client_id, client_secret: EXAMPLE.clientSecret },
});
/** The claims of every token, and `token_type`. */
const CLAIMS = ['token_type', 'iss', 'sub', 'aud', 'client_id', 'organization_id', 'iat', 'exp', 'jti', 'gen'];
const CREDENTIAL_ERRORS = [
  REQUEST_ERRORS.secretTwice(),
  REQUEST_ERRORS.clientOfOtherHeader(),
  REQUEST_ERRORS.secretOfOperator(),
];

/** Introspection and revocation for services inside the cluster (protocol §7.1 and §7.2). */
@ManagementController('oauth2')
export class IntrospectionController {
  constructor(
    private readonly introspection: TokenIntrospection,
    private readonly revocation: TokenRevocation,
    private readonly clients: ClientAuthentication,
    private readonly requests: TokenRequests,
  ) {}

  /** RFC 7662. A registered resource server may introspect the tokens of its audiences, the operator any token. */
  @Post('introspect')
  @ApiRoute({
    summary: 'Introspect a token (RFC 7662)',
    description:
      'A service asks whether a token is valid, and who sent it. A resource server sees tokens of its audiences, the operator all tokens.',
    body: TokenBody,
    bodyFormats: ['form', 'json'],
    bodyExamples: tokenExamples(EXAMPLE.resourceServerId),
    response: IntrospectionResponse,
    responseExamples: {
      'a valid token': [...CLAIMS, 'gty'],
      'a token of a customer in a group, by a transfer of an agent': [
        ...CLAIMS,
        'gty',
        'group_id',
        'act',
        'ancestors',
        'transfers',
      ],
      'an invalid or ended token': { active: false },
      'an ended token, for the operator': { active: false, inactive_reason: 'revoked' },
    },
    withGrantClaims: true,
    security: ['resource_server', 'operator', 'none'],
    errors: () => CREDENTIAL_ERRORS,
  })
  @HttpCode(200)
  async introspect(@Req() request: Request): Promise<IntrospectionResponse> {
    const authenticate = (credentials: ClientCredentials) => this.clients.resourceServerWithSecret(credentials);
    const { caller, token } = await this.requests.read(request, authenticate);
    return this.introspection.introspect(token, caller?.audiences);
  }

  /** RFC 7009. A client with a secret may revoke its own tokens, the operator any token. */
  @Post('revoke')
  @ApiRoute({
    summary: 'Revoke an access token or a refresh token (RFC 7009)',
    description:
      'Ends an access token with its descendants, or a refresh token with its family. A client ends its own tokens, the operator any token. The response is the same for an invalid token.',
    body: TokenBody,
    bodyFormats: ['form', 'json'],
    bodyExamples: tokenExamples(EXAMPLE.serverClientId),
    security: ['client', 'operator', 'none'],
    errors: () => CREDENTIAL_ERRORS,
  })
  @HttpCode(200)
  async revoke(@Req() request: Request): Promise<object> {
    const authenticate = (credentials: ClientCredentials) => this.clients.clientWithSecret(credentials);
    const { caller, token } = await this.requests.read(request, authenticate);
    await this.revocation.revoke(token, caller?.clientId);
    return {};
  }
}
