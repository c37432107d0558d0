import { Delete, HttpCode, Post, Req } from '@nestjs/common';
import { MaxLength } from 'class-validator';
import type { Request } from 'express';
import { BearerGuard } from '../http/callers/bearer.guard.js';
import { CredentialParameters } from '../http/callers/client-authentication.js';
import { agentActor, assertAgent, type Principal } from '../http/callers/principal.js';
import { ClientGuard } from '../http/callers/secret.guards.js';
import { Caller } from '../http/routes/parameter.decorators.js';
import { Limits } from '../oauth/limits.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { readParameters, requiredString } from '../oauth/parameters.js';
import { Audit, party } from '../platform/audit/audit.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/listener.decorators.js';
import { requestContext, traced } from '../platform/request-context/request-context.js';
import { ApiEnum, ApiOptionalString, ApiString } from '../platform/validation/validation.js';
import { type AgentRefreshRow, AgentRefreshTokens } from '../redemption/agent-refresh-tokens.js';
import { AuthorizationCodes, type AuthorizationRow } from '../redemption/authorization-codes.js';
import { Agents } from '../registry/agents.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import { AgentSessionEndings } from '../session/agent/agent-session-endings.js';
import {
  type AgentGrant,
  AgentTokenIssuer,
  AgentTokenResponse,
  grantedScope,
  spaceDelimited,
} from './agent-token-issuer.js';
import { ClientCredentials } from './client-credentials.js';

/** The access token request (RFC 6749 §4.1.3, RFC 7636 §4.5). */
class CodeExchangeBody extends CredentialParameters {
  @ApiEnum(['authorization_code'], 'Exchanges the authorization code of the authorization page.')
  grant_type!: 'authorization_code';

  @ApiString('The `code` of the redirect. It can be redeemed once.', EXAMPLE.authorizationCode)
  @MaxLength(1024)
  code!: string;

  @ApiString('The `redirect_uri` of the authorization request.', EXAMPLE.redirectUri)
  @MaxLength(2000)
  redirect_uri!: string;

  @ApiOptionalString(
    'Required if the authorization request had a `code_challenge`, and rejected otherwise (RFC 7636).',
    EXAMPLE.codeVerifier,
  )
  code_verifier?: string;
}

/** The refresh request (RFC 6749 §6). */
class RefreshBody extends CredentialParameters {
  @ApiEnum(['refresh_token'], 'Exchanges the refresh token of the last response.')
  grant_type!: 'refresh_token';

  @ApiString('The refresh token of the last response.', EXAMPLE.refreshToken)
  @MaxLength(1024)
  refresh_token!: string;

  @ApiOptionalString('Fewer scopes than were granted, for this access token only. Separated by spaces.', EXAMPLE.scope)
  @MaxLength(1000)
  scope?: string;
}

/** RFC 6749 §4.4.2. */
class ClientCredentialsBody extends CredentialParameters {
  @ApiEnum(['client_credentials'], 'Gets a token of the agent that the entry of the client names.')
  grant_type!: 'client_credentials';

  @ApiOptionalString('Fewer scopes than the client and the agent have in common. Separated by spaces.', EXAMPLE.scope)
  @MaxLength(1000)
  scope?: string;
}

const excessiveScope = () => OAuthError.invalidRequest('scope: exceeds the granted scope');
const onlyAtPage = () =>
  OAuthError.unauthorizedClient('client_id: a web application gets its token at the authorization page');

class TokenResponse extends AgentTokenResponse {
  @ApiOptionalString(
    'Gets the next access token by the grant `refresh_token`. Each use replaces it. Absent for `client_credentials`.',
    EXAMPLE.refreshToken,
  )
  refresh_token?: string;

  @ApiString('The id of the agent.', EXAMPLE.agentId)
  account_id!: string;

  @ApiString('The organization of the agent.', EXAMPLE.organizationId)
  organization_id!: string;
}

const INVALID_GRANT_HINTS = {
  authorization_code:
    'code: unknown, expired, used, ended or of another client; or redirect_uri or code_verifier: does not fit the code',
  refresh_token: 'refresh_token: unknown, expired, used before, ended or of another client',
};

/** `/v2/token`: the token endpoint of agents (RFC 6749 §3.2, protocol §6.8). */
@PublicController('v2/token')
export class AgentTokenController {
  constructor(
    private readonly codes: AuthorizationCodes,
    private readonly refreshTokens: AgentRefreshTokens,
    private readonly endings: AgentSessionEndings,
    private readonly agents: Agents,
    private readonly tokens: AgentTokenIssuer,
    private readonly clientCredentials: ClientCredentials,
    private readonly audit: Audit,
    private readonly limits: Limits,
  ) {}

  @Post()
  @ApiRoute({
    summary: 'Get an agent token for a code, a refresh token or the credentials of the client (RFC 6749)',
    description:
      'The token endpoint for applications of agents, of type `server` or `native`. A web application gets its token at the authorization page instead.',
    body: [CodeExchangeBody, RefreshBody, ClientCredentialsBody],
    bodyFormats: ['form', 'json'],
    response: TokenResponse,
    security: ['client', 'none'],
    errors: [
      '400 invalid_grant',
      '400 invalid_scope',
      '400 unauthorized_client',
      '400 unsupported_grant_type',
      '429 temporarily_unavailable',
    ],
  })
  @HttpCode(200)
  async token(
    @Caller(ClientGuard) client: ClientApplication,
    @Req() { body: parameters }: Request,
  ): Promise<TokenResponse> {
    this.limits.takeKeys('tokens', client.clientId);
    if (client.clientType === 'web') throw onlyAtPage();
    const grantType = requiredString('grant_type', parameters.grant_type);
    if (grantType === 'client_credentials') return this.ofClient(client, parameters);
    if (grantType !== 'authorization_code' && grantType !== 'refresh_token') throw OAuthError.unsupportedGrantType();
    requestContext.set({ grant: grantType, invalidGrantHint: INVALID_GRANT_HINTS[grantType] });
    return grantType === 'refresh_token' ? this.refresh(client, parameters) : this.exchange(client, parameters);
  }

  @Delete()
  @ApiRoute({
    summary: 'End the agent token of the request, and its descendants; refresh tokens stay valid',
    description: 'Ends the bearer token at once, and every customer token that the agent obtained with it.',
  })
  async end(@Caller(BearerGuard) caller: Principal): Promise<object> {
    const agent = assertAgent(caller);
    if (await this.endings.endTokens(agent))
      this.audit.success('token.revoked', agentActor(agent), party('token', agent.claims.jti));
    return {};
  }

  private async ofClient(client: ClientApplication, parameters: Record<string, unknown>): Promise<TokenResponse> {
    requestContext.set({ grant: 'client_credentials' });
    const { scope } = readParameters(ClientCredentialsBody, parameters);
    const { grant, session } = await this.clientCredentials.grant(client, scope);
    return this.tokenResponse(grant, session);
  }

  private async exchange(client: ClientApplication, parameters: Record<string, unknown>): Promise<TokenResponse> {
    const { code, redirect_uri, code_verifier } = readParameters(CodeExchangeBody, parameters);
    return traced('redemption', { 'cas.code_kind': 'authorization' }, async () => {
      const proof = { clientId: client.clientId, redirectUri: redirect_uri, codeVerifier: code_verifier };
      const found = await this.codes.find(code, proof);
      const grant = await this.currentGrant(client, grantOf(found.row));
      const refreshToken = await this.refreshTokens.begin(found);
      return this.tokenResponse(grant, { id: found.row.id, epoch: 0 }, refreshToken);
    });
  }

  private async refresh(client: ClientApplication, parameters: Record<string, unknown>): Promise<TokenResponse> {
    const { refresh_token, scope } = readParameters(RefreshBody, parameters);
    const decide = async (row: AgentRefreshRow) => narrowScope(await this.currentGrant(client, grantOf(row)), scope);
    const { row, access, refreshToken } = await this.refreshTokens.refresh(refresh_token, client.clientId, decide);
    return this.tokenResponse(access, row, refreshToken);
  }

  /** What the agent can grant the client now: the client may have lost scopes. A changed agent has ended the session. */
  private async currentGrant(client: ClientApplication, granted: AgentGrant): Promise<AgentGrant> {
    const { agentId, organizationId, clientId } = granted;
    const agent = await this.agents.byId(agentId);
    if (agent?.organizationId !== organizationId || !client.usableIn(organizationId))
      throw OAuthError.invalidGrant('the agent or the client left the organization');
    const scope = grantedScope(granted.scope, client.scopes, agent.scopes);
    if (scope === '') throw OAuthError.invalidGrant('no granted scope is left');
    return { agentId, organizationId, clientId, scope };
  }

  private tokenResponse(
    grant: AgentGrant,
    session: { id: string; epoch: number },
    refreshToken?: string,
  ): TokenResponse {
    return {
      ...this.tokens.issueFor(grant, session),
      ...(refreshToken !== undefined && { refresh_token: refreshToken }),
      account_id: grant.agentId,
      organization_id: grant.organizationId,
    };
  }
}

function grantOf(row: AgentRefreshRow | AuthorizationRow): AgentGrant {
  const { agent_id, organization_id, client_id, scope } = row;
  return { agentId: agent_id, organizationId: organization_id, clientId: client_id, scope };
}

/** A refresh request may ask for fewer scopes than were granted, never for more (RFC 6749 §6). */
function narrowScope(grant: AgentGrant, requestedScope: string | undefined): AgentGrant {
  if (requestedScope === undefined) return grant;
  const granted = grant.scope.split(' ');
  const scopes = spaceDelimited(requestedScope);
  if (scopes.length === 0 || !scopes.every((scope) => granted.includes(scope))) throw excessiveScope();
  return { ...grant, scope: scopes.join(' ') };
}
