import { HttpCode, Post, Req } from '@nestjs/common';
import { IsString, MaxLength } from 'class-validator';
import type { Request } from 'express';
import { readBasicCredentials } from '../oauth/basic-credentials.js';
import { readBody } from '../oauth/body-reader.js';
import { parseFormOrJson } from '../oauth/form.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { readParameters } from '../oauth/parameters.js';
import { OperatorCredentials } from '../operator/operator-credentials.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { ClientAuthentication } from '../registry/client-authentication.js';
import { IntrospectionResponse, TokenIntrospection } from './token-introspection.js';
import { TokenRevocation } from './token-revocation.js';

class TokenBody {
  @IsString()
  @MaxLength(8192)
  token: string;
}

/** Introspection and revocation for services inside the cluster (protocol §7.1 and §7.2). */
@ManagementController('oauth2')
export class IntrospectionController {
  constructor(
    private readonly introspection: TokenIntrospection,
    private readonly revocation: TokenRevocation,
    private readonly clients: ClientAuthentication,
    private readonly operator: OperatorCredentials,
  ) {}

  /** RFC 7662. A registered resource server may introspect the tokens of its audiences, the operator any token. */
  @Post('introspect')
  @ApiRoute({
    summary: 'Introspect a token (RFC 7662)',
    body: TokenBody,
    bodyFormats: ['form', 'json'],
    response: IntrospectionResponse,
    withGrantClaims: true,
    security: ['resource_server', 'operator'],
  })
  @HttpCode(200)
  async introspect(@Req() request: Request): Promise<IntrospectionResponse> {
    const { authorization } = request.headers;
    const audiences = this.operator.match(authorization)
      ? undefined
      : this.clients.resourceServer(authorization).audiences;
    return this.introspection.introspect(await readToken(request), audiences);
  }

  /** RFC 7009. A client with a secret may revoke its own tokens, the operator any token. */
  @Post('revoke')
  @ApiRoute({
    summary: 'Revoke an access token or a refresh token (RFC 7009)',
    body: TokenBody,
    bodyFormats: ['form', 'json'],
    security: ['client', 'operator'],
  })
  @HttpCode(200)
  async revoke(@Req() request: Request): Promise<object> {
    const { authorization } = request.headers;
    const clientId = this.operator.match(authorization) ? undefined : this.clientWithSecret(authorization);
    await this.revocation.revoke(await readToken(request), clientId);
    return {};
  }

  private clientWithSecret(authorization: string | undefined): string {
    if (!readBasicCredentials(authorization)) throw OAuthError.invalidClient('no Basic credentials');
    const { clientId, secretHash } = this.clients.authenticate(authorization, {});
    if (secretHash === null) throw OAuthError.invalidClient('a client without a secret');
    requestContext.set({ clientId });
    return clientId;
  }
}

async function readToken(request: Request): Promise<string> {
  const parameters = parseFormOrJson(await readBody(request), request.headers['content-type']);
  return readParameters(TokenBody, parameters).token;
}
