import { Delete, HttpCode, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { Denylist } from '../../access-token/denylist.js';
import { Audit, party } from '../../audit/audit.js';
import { BearerGuard } from '../../bearer/bearer.guard.js';
import { agentActor, assertAgent, type Principal } from '../../bearer/principal.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { requiredString } from '../../oauth/parameters.js';
import { readBody } from '../../oauth/request-body.js';
import { REQUEST_ERRORS } from '../../oauth/request-errors.js';
import { ApiRoute } from '../../platform/http/api-route.js';
import { PublicController } from '../../platform/http/surfaces.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { RateLimits } from '../../rate-limit/rate-limits.js';
import { ClientAuthentication } from '../../registry/client-authentication.js';
import { Caller } from '../../routes/parameter.decorators.js';
import {
  assertClientUsesCodes,
  CodeExchangeBody,
  excessiveScope,
  ONLY_AT_PAGE,
  RefreshBody,
  TokenPairEndpoint,
  TokenPairResponse,
} from './token-pair.endpoint.js';

/** `/v2/token`: the token endpoint of agents (RFC 6749 §3.2, protocol §6.8). */
@PublicController('v2/token')
export class TokenPairController {
  constructor(
    private readonly clients: ClientAuthentication,
    private readonly endpoint: TokenPairEndpoint,
    private readonly denylist: Denylist,
    private readonly audit: Audit,
    private readonly limits: RateLimits,
  ) {}

  @Post()
  @ApiRoute({
    summary: 'Get an agent token pair for an authorization code or a refresh token (RFC 6749)',
    description:
      'The token endpoint for applications of agents, of type `server` or `native`. A web application gets its token at the authorization page instead.',
    body: [CodeExchangeBody, RefreshBody],
    bodyFormats: ['form', 'json'],
    bodyExamples: {
      'a client that authenticates by the header Authorization': [],
      'a client that sends its secret in the body': ['client_id', 'client_secret'],
      'a client without a secret': ['client_id', 'code_verifier'],
    },
    response: TokenPairResponse,
    security: ['client', 'none'],
    errors: () => [
      OAuthError.unsupportedGrantType(),
      OAuthError.invalidGrant('example'),
      OAuthError.unauthorizedClient(ONLY_AT_PAGE),
      excessiveScope(),
      REQUEST_ERRORS.secretTwice(),
      REQUEST_ERRORS.clientOfOtherHeader(),
      OAuthError.rateLimited(1, 'example'),
    ],
  })
  @HttpCode(200)
  async token(@Req() request: Request): Promise<TokenPairResponse> {
    const parameters = await readBody(request, { form: true });
    const client = this.clients.authenticate(request.headers.authorization, parameters);
    requestContext.set({ clientId: client.clientId });
    this.limits.take('tokens', client.clientId);
    assertClientUsesCodes(client);
    const grantType = requiredString('grant_type', parameters.grant_type);
    switch (grantType) {
      case 'authorization_code':
        requestContext.set({ grant: grantType });
        return this.endpoint.exchange(client, parameters);
      case 'refresh_token':
        requestContext.set({ grant: grantType });
        return this.endpoint.refresh(client, parameters);
      default:
        throw OAuthError.unsupportedGrantType();
    }
  }

  /** Ends the bearer token. The refresh family that was issued with it stays valid. */
  @Delete()
  @ApiRoute({
    summary: 'End the agent token of the request, and its descendants; refresh tokens stay valid',
    description: 'Ends the bearer token at once, and every customer token that the agent obtained with it.',
  })
  async end(@Caller(BearerGuard) caller: Principal): Promise<object> {
    const agent = assertAgent(caller);
    await this.denylist.revokeToken(agent.claims);
    this.audit.success('token.revoked', agentActor(agent), party('token', agent.claims.jti));
    return {};
  }
}
