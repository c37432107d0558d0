import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { IsIn, IsString, MaxLength } from 'class-validator';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Optional, OptionalText, readParameters, Text } from '../../oauth/parameters.js';
import type { RedeemableCode } from '../../one-time-code/code-origin.js';
import { OneTimeCodes } from '../../one-time-code/one-time-codes.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import type { RefreshContent } from '../../refresh-token/family-statements.js';
import { RefreshTokens } from '../../refresh-token/refresh-tokens.js';
import { Agents } from '../../registry/agents.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import { CredentialParameters } from '../../registry/client-authentication.js';
import { type AgentGrant, AgentTokenIssuer, AgentTokenResponse, grantedScope } from '../agent-token-issuer.js';

/** The access token request (RFC 6749 §4.1.3, RFC 7636 §4.5). */
export class CodeExchangeBody extends CredentialParameters {
  @IsIn(['authorization_code'])
  @ApiProperty('Exchanges the authorization code of the authorization page.', 'authorization_code')
  grant_type!: 'authorization_code';

  @IsString()
  @MaxLength(1024)
  @ApiProperty('The `code` of the redirect. It can be redeemed once.', EXAMPLE.authorizationCode)
  code!: string;

  @IsString()
  @MaxLength(2000)
  @ApiProperty('The `redirect_uri` of the authorization request.', EXAMPLE.redirectUri)
  redirect_uri!: string;

  @OptionalText(
    'Required if the authorization request had a `code_challenge`, and rejected otherwise (RFC 7636).',
    EXAMPLE.codeVerifier,
  )
  code_verifier?: string;
}

/** The refresh request (RFC 6749 §6). */
export class RefreshBody extends CredentialParameters {
  @IsIn(['refresh_token'])
  @ApiProperty('Exchanges the refresh token of the last response.', 'refresh_token')
  grant_type!: 'refresh_token';

  @IsString()
  @MaxLength(1024)
  @ApiProperty('The refresh token of the last response.', EXAMPLE.refreshToken)
  refresh_token!: string;

  @Optional()
  @IsString()
  @MaxLength(1000)
  @ApiProperty('Fewer scopes than were granted, for this access token only. Separated by spaces.', EXAMPLE.scope)
  scope?: string;
}

export const excessiveScope = () => OAuthError.invalidRequest('scope: exceeds the granted scope');
export const ONLY_AT_PAGE = 'client_id: a web application gets its token at the authorization page';

/** The response of `POST /v2/token` (protocol §6.8). */
export class TokenPairResponse extends AgentTokenResponse {
  @Text('Gets the next access token by the grant `refresh_token`. Each use replaces it.', EXAMPLE.refreshToken)
  refresh_token!: string;

  @Text('The id of the agent.', EXAMPLE.agentId)
  account_id!: string;

  @Text('The organization of the agent.', EXAMPLE.organizationId)
  organization_id!: string;
}

/** Issues token pairs to the clients of agents, for authorization codes and refresh tokens. */
@Injectable()
export class TokenPairEndpoint {
  constructor(
    private readonly codes: OneTimeCodes,
    private readonly refreshTokens: RefreshTokens,
    private readonly agents: Agents,
    private readonly tokens: AgentTokenIssuer,
  ) {}

  /**
   * The first token pair for an authorization code (RFC 6749 §4.1.3).
   *
   * @throws OAuthError `invalid_request`, `invalid_grant`
   */
  async exchange(client: ClientApplication, parameters: Record<string, unknown>): Promise<TokenPairResponse> {
    const { code, redirect_uri, code_verifier } = readParameters(CodeExchangeBody, parameters);
    const proof = { clientId: client.clientId, redirectUri: redirect_uri, codeVerifier: code_verifier };
    let grant: AgentGrant | undefined;
    let refreshToken = '';
    const { attempt } = await this.codes.redeem('authorization', code, proof, {
      prepare: async (granted) => {
        grant = await this.currentGrant(client, contentOf(granted));
      },
      // the id of the refresh family is the attempt that redeemed the code, so that a replay of the code ends the family
      store: async (manager, redeemed) => {
        const { attempt: id, grantedAt } = redeemed;
        refreshToken = await this.refreshTokens.beginIn(manager, id, contentOf(redeemed), grantedAt);
      },
    });
    // the `jti` is never the id of the family itself, so ending this token alone leaves the family valid
    return this.tokenPairResponse(grant as AgentGrant, `${attempt}.${randomUUID()}`, refreshToken);
  }

  /**
   * The next token pair of a refresh family (RFC 6749 §6).
   *
   * @throws OAuthError `invalid_request`, `invalid_grant`
   */
  async refresh(client: ClientApplication, parameters: Record<string, unknown>): Promise<TokenPairResponse> {
    const { refresh_token, scope } = readParameters(RefreshBody, parameters);
    // the controller has authenticated every client that has a secret
    const { clientId, secretHash } = client;
    const refreshing = { clientId, isAuthenticated: secretHash !== null, audience: 'agent-api' } as const;
    const decide = async (granted: RefreshContent) => narrowScope(await this.currentGrant(client, granted), scope);
    const { access, family, refreshToken } = await this.refreshTokens.rotate(refresh_token, refreshing, decide);
    return this.tokenPairResponse(access, `${family}.${randomUUID()}`, refreshToken);
  }

  /** What the agent can grant the client now. The agent or the client may have lost scopes since the grant. */
  private async currentGrant(client: ClientApplication, granted: RefreshContent): Promise<AgentGrant> {
    const { organizationId, clientId } = granted;
    const agentId = granted.owner.id;
    const generation = granted.lineage.gen;
    const agent = await this.agents.byId(agentId);
    if (agent && agent.generation > generation) throw OAuthError.invalidGrant('the agent changed after the grant');
    if (agent?.organizationId !== organizationId || !client.usableIn(organizationId)) {
      throw OAuthError.invalidGrant('the agent or the client left the organization');
    }
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

function contentOf({ subject, clientId, organizationId, scope, lineage }: RedeemableCode): RefreshContent {
  const owner = { kind: 'agent', id: subject } as const;
  return { owner, clientId, organizationId, scope: scope ?? '', lineage: { gen: lineage.gen } };
}

/** A refresh request may ask for fewer scopes than were granted, never for more (RFC 6749 §6). */
function narrowScope(grant: AgentGrant, requestedScope: string | undefined): AgentGrant {
  if (requestedScope === undefined) return grant;
  const granted = grant.scope.split(' ');
  const scopes = requestedScope.split(' ');
  if (!scopes.every((scope) => granted.includes(scope))) throw excessiveScope();
  return { ...grant, scope: scopes.join(' ') };
}

/** Web applications get tokens at the page and never codes, so they cannot redeem one. */
export function assertClientUsesCodes(client: ClientApplication): void {
  if (client.clientType === 'web') throw OAuthError.unauthorizedClient(ONLY_AT_PAGE);
}
