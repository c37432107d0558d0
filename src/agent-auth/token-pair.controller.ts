import { randomUUID } from 'node:crypto';
import { Delete, HttpCode, Post, Req } from '@nestjs/common';
import { MaxLength } from 'class-validator';
import type { Request } from 'express';
import { Audit, party } from '../audit/audit.js';
import { BearerGuard } from '../bearer/bearer.guard.js';
import { agentActor, assertAgent, type Principal } from '../bearer/principal.js';
import { OAuthError, REQUEST_ERRORS } from '../oauth/oauth-error.js';
import { OneOf, OptionalText, readParameters, requiredString, Text } from '../oauth/parameters.js';
import { readBody } from '../oauth/request-body.js';
import { OneTimeCodes } from '../one-time-code/one-time-codes.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { authorizationOf } from '../platform/http/authorization.js';
import { PublicController } from '../platform/http/surfaces.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { RateLimits } from '../rate-limit/rate-limits.js';
import type { RefreshContent } from '../refresh-token/family-statements.js';
import { RefreshTokens } from '../refresh-token/refresh-tokens.js';
import { Agents } from '../registry/agents.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import {
  ClientAuthentication,
  CredentialParameters,
  readClientCredentials,
} from '../registry/client-authentication.js';
import { Caller } from '../routes/parameter.decorators.js';
import { Endings } from '../session/endings.js';
import {
  type AgentGrant,
  AgentTokenIssuer,
  AgentTokenResponse,
  grantedScope,
  spaceDelimited,
} from './agent-token-issuer.js';

/** The access token request (RFC 6749 §4.1.3, RFC 7636 §4.5). */
class CodeExchangeBody extends CredentialParameters {
  @OneOf(['authorization_code'], 'Exchanges the authorization code of the authorization page.')
  grant_type!: 'authorization_code';

  @Text('The `code` of the redirect. It can be redeemed once.', EXAMPLE.authorizationCode)
  @MaxLength(1024)
  code!: string;

  @Text('The `redirect_uri` of the authorization request.', EXAMPLE.redirectUri)
  @MaxLength(2000)
  redirect_uri!: string;

  @OptionalText(
    'Required if the authorization request had a `code_challenge`, and rejected otherwise (RFC 7636).',
    EXAMPLE.codeVerifier,
  )
  code_verifier?: string;
}

/** The refresh request (RFC 6749 §6). */
class RefreshBody extends CredentialParameters {
  @OneOf(['refresh_token'], 'Exchanges the refresh token of the last response.')
  grant_type!: 'refresh_token';

  @Text('The refresh token of the last response.', EXAMPLE.refreshToken)
  @MaxLength(1024)
  refresh_token!: string;

  @OptionalText('Fewer scopes than were granted, for this access token only. Separated by spaces.', EXAMPLE.scope)
  @MaxLength(1000)
  scope?: string;
}

const excessiveScope = () => OAuthError.invalidRequest('scope: exceeds the granted scope');
const onlyAtPage = () =>
  OAuthError.unauthorizedClient('client_id: a web application gets its token at the authorization page');

class TokenPairResponse extends AgentTokenResponse {
  @Text('Gets the next access token by the grant `refresh_token`. Each use replaces it.', EXAMPLE.refreshToken)
  refresh_token!: string;

  @Text('The id of the agent.', EXAMPLE.agentId)
  account_id!: string;

  @Text('The organization of the agent.', EXAMPLE.organizationId)
  organization_id!: string;
}

/** `/v2/token`: the token endpoint of agents (RFC 6749 §3.2, protocol §6.8). */
@PublicController('v2/token')
export class TokenPairController {
  constructor(
    private readonly clients: ClientAuthentication,
    private readonly codes: OneTimeCodes,
    private readonly refreshTokens: RefreshTokens,
    private readonly agents: Agents,
    private readonly tokens: AgentTokenIssuer,
    private readonly endings: Endings,
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
      onlyAtPage(),
      excessiveScope(),
      REQUEST_ERRORS.secretTwice(),
      REQUEST_ERRORS.clientOfOtherHeader(),
      OAuthError.rateLimited(1, 'example'),
    ],
  })
  @HttpCode(200)
  async token(@Req() request: Request): Promise<TokenPairResponse> {
    const parameters = await readBody(request, { form: true });
    const client = this.clients.client(readClientCredentials(authorizationOf(request), parameters));
    this.limits.take('tokens', client.clientId);
    if (client.clientType === 'web') throw onlyAtPage();
    const grantType = requiredString('grant_type', parameters.grant_type);
    if (grantType !== 'authorization_code' && grantType !== 'refresh_token') throw OAuthError.unsupportedGrantType();
    requestContext.set({ grant: grantType });
    return grantType === 'refresh_token' ? this.refresh(client, parameters) : this.exchange(client, parameters);
  }

  @Delete()
  @ApiRoute({
    summary: 'End the agent token of the request, and its descendants; refresh tokens stay valid',
    description: 'Ends the bearer token at once, and every customer token that the agent obtained with it.',
  })
  async end(@Caller(BearerGuard) caller: Principal): Promise<object> {
    const agent = assertAgent(caller);
    await this.endings.endAgentToken(agent.claims);
    this.audit.success('token.revoked', agentActor(agent), party('token', agent.claims.jti));
    return {};
  }

  private async exchange(client: ClientApplication, parameters: Record<string, unknown>): Promise<TokenPairResponse> {
    const { code, redirect_uri, code_verifier } = readParameters(CodeExchangeBody, parameters);
    const proof = { clientId: client.clientId, redirectUri: redirect_uri, codeVerifier: code_verifier };
    let grant: AgentGrant | undefined;
    let refreshToken = '';
    const { attempt } = await this.codes.redeem(code, proof, {
      prepare: async (granted) => {
        grant = await this.currentGrant(client, granted);
      },
      // the id of the refresh family is the attempt that redeemed the code, so that a replay of the code ends the family
      store: async (manager, redeemed) => {
        const { attempt: id, grantedAt } = redeemed;
        refreshToken = await this.refreshTokens.beginIn(manager, id, redeemed, grantedAt);
      },
    });
    // the `jti` is never the id of the family itself, so ending this token alone leaves the family valid
    return this.tokenPairResponse(grant as AgentGrant, `${attempt}.${randomUUID()}`, refreshToken);
  }

  private async refresh(client: ClientApplication, parameters: Record<string, unknown>): Promise<TokenPairResponse> {
    const { refresh_token, scope } = readParameters(RefreshBody, parameters);
    // `token` has authenticated every client that has a secret
    const { clientId, secretHash } = client;
    const refreshing = { clientId, isAuthenticated: secretHash !== null };
    const decide = async (granted: RefreshContent) => narrowScope(await this.currentGrant(client, granted), scope);
    const { access, family, refreshToken } = await this.refreshTokens.rotate(refresh_token, refreshing, decide);
    return this.tokenPairResponse(access, `${family}.${randomUUID()}`, refreshToken);
  }

  /** What the agent can grant the client now. The agent or the client may have lost scopes since the grant. */
  private async currentGrant(client: ClientApplication, granted: RefreshContent): Promise<AgentGrant> {
    const { agentId, organizationId, clientId, generation } = granted;
    const agent = await this.agents.byId(agentId);
    if (agent && agent.generation > generation) throw OAuthError.invalidGrant('the agent changed after the grant');
    if (agent?.organizationId !== organizationId || !client.usableIn(organizationId))
      throw OAuthError.invalidGrant('the agent or the client left the organization');
    const scope = grantedScope(granted.scope, client.scopes, agent.scopes);
    if (scope === '') throw OAuthError.invalidGrant('no granted scope is left');
    return { agentId, organizationId, clientId, scope, generation };
  }

  private tokenPairResponse(grant: AgentGrant, jti: string, refreshToken: string): TokenPairResponse {
    return {
      ...this.tokens.issue(grant, jti),
      refresh_token: refreshToken,
      account_id: grant.agentId,
      organization_id: grant.organizationId,
    };
  }
}

/** A refresh request may ask for fewer scopes than were granted, never for more (RFC 6749 §6). */
function narrowScope(grant: AgentGrant, requestedScope: string | undefined): AgentGrant {
  if (requestedScope === undefined) return grant;
  const granted = grant.scope.split(' ');
  const scopes = spaceDelimited(requestedScope);
  if (scopes.length === 0 || !scopes.every((scope) => granted.includes(scope))) throw excessiveScope();
  return { ...grant, scope: scopes.join(' ') };
}
