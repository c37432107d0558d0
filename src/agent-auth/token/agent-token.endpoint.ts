import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Denylist, familyOf } from '../../access-token/denylist.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { readParameters } from '../../oauth/parameters.js';
import { OneTimeCodes } from '../../one-time-code/one-time-codes.js';
import { RefreshTokens } from '../../one-time-code/refresh-tokens.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import { type AgentGrant, type AgentTokenResponse, AgentTokens } from '../agent-tokens.js';
import type { AgentPrincipal } from '../principal.js';
import { CodeExchangeBody, RefreshBody } from './agent-token.body.js';

/** The answer of `POST /v2/token` (contract, section 8). */
export interface TokenPairResponse extends AgentTokenResponse {
  refresh_token: string;
  account_id: string;
  organization_id: string;
}

/** Gives agents' tokens for authorization codes and refresh tokens. */
@Injectable()
export class AgentTokenEndpoint {
  constructor(
    private readonly codes: OneTimeCodes,
    private readonly refreshTokens: RefreshTokens,
    private readonly tokens: AgentTokens,
    private readonly denylist: Denylist,
  ) {}

  /**
   * The first token pair for an authorization code (RFC 6749 section 4.1.3).
   *
   * @throws OAuthError `invalid_request`, `invalid_grant`
   */
  async exchange(
    client: ClientApplication,
    sent: Record<string, unknown>,
    arrivedAt: number,
  ): Promise<TokenPairResponse> {
    const { code, redirect_uri, code_verifier } = readParameters(CodeExchangeBody, sent);
    const proof = { clientId: client.clientId, redirectUri: redirect_uri, codeVerifier: code_verifier, arrivedAt };
    const redeemed = await this.codes.redeem('authorization', code, proof);
    const grant = {
      agentId: redeemed.subject,
      organizationId: redeemed.organizationId,
      clientId: client.clientId,
      scope: redeemed.scope ?? '',
    };
    // the attempt that redeemed the code begins the chain: whoever replays the code ends all of it
    const refreshToken = await this.refreshTokens.begin(redeemed.attempt, grant);
    return this.answer(grant, redeemed.attempt, refreshToken);
  }

  /**
   * The next token pair of a chain (RFC 6749 section 6).
   *
   * @throws OAuthError `invalid_request`, `invalid_grant`
   */
  async refresh(
    client: ClientApplication,
    sent: Record<string, unknown>,
    arrivedAt: number,
  ): Promise<TokenPairResponse> {
    const { refresh_token } = readParameters(RefreshBody, sent);
    const refreshed = await this.refreshTokens.rotate(refresh_token, client.clientId, arrivedAt);
    return this.answer(refreshed, `${refreshed.family}.${randomUUID()}`, refreshed.refreshToken);
  }

  /** Ends a bearer, and the chain of refreshes that it belongs to. */
  async end({ token, foreign }: AgentPrincipal): Promise<void> {
    if (foreign) await this.denylist.revokeToken(token);
    else await this.refreshTokens.end(familyOf(token.jti));
  }

  private answer(grant: AgentGrant, jti: string, refreshToken: string): TokenPairResponse {
    return {
      ...this.tokens.issue(grant, jti),
      refresh_token: refreshToken,
      account_id: grant.agentId,
      organization_id: grant.organizationId,
    };
  }
}

/** The client of a code exchange is one that is given codes at the page. */
export function refuseClientOfTokens(client: ClientApplication): void {
  if (client.clientType === 'web')
    throw OAuthError.unauthorizedClient('client_id: a web application gets its token at the page');
}
