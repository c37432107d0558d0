import { Injectable } from '@nestjs/common';
import { type AccessTokenClaims, OPAQUE_TOKEN } from '../../access-token/access-tokens.js';
import { INACTIVE_REASONS, type InactiveReason, type StoredToken } from '../../access-token/inactive-reason.js';
import { TrustedIssuerTokens } from '../../http/callers/trusted-issuer-tokens.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import type { TrustedIssuer } from '../../platform/configuration/issuers.js';
import { AgentRefreshTokens } from '../../redemption/agent-refresh-tokens.js';
import { AuthorizationCodes } from '../../redemption/authorization-codes.js';
import { CustomerRefreshTokens } from '../../redemption/customer-refresh-tokens.js';
import { TransferCodes } from '../../redemption/transfer-codes.js';
import { Registry } from '../../registry/registry.js';
import { TokenInspection } from '../../session/token-validity.js';

interface ExplainedToken {
  kind: string;
  valid: boolean;
  reason?: InactiveReason;
  explanation?: string;
  /** The claims of an access token of this service, whose signature is valid. */
  claims?: AccessTokenClaims;
  stored?: Omit<StoredToken, 'kind' | 'inactiveReason'>;
}

/** Explains to the operator what a token is (protocol §9.3). It changes nothing. */
@Injectable()
export class TokenExplanation {
  constructor(
    private readonly tokens: TokenInspection,
    private readonly trustedIssuers: TrustedIssuerTokens,
    private readonly transferCodes: TransferCodes,
    private readonly customerRefreshTokens: CustomerRefreshTokens,
    private readonly authorizationCodes: AuthorizationCodes,
    private readonly agentRefreshTokens: AgentRefreshTokens,
    private readonly registry: Registry,
  ) {}

  async explain(text: string): Promise<ExplainedToken> {
    if (OPAQUE_TOKEN.test(text)) return this.explainOpaque(text);
    const issuer = this.trustedIssuers.issuerOf(text);
    if (issuer) return explained('agent token of a trusted issuer', await this.endedReason(text, issuer));
    const { claims, inactiveReason } = await this.tokens.inspect(text);
    if (!claims) return explained('unknown text', inactiveReason);
    const kind = claims.aud === 'agent-api' ? 'agent access token' : 'customer access token';
    return { ...explained(kind, inactiveReason), claims };
  }

  private async explainOpaque(text: string): Promise<ExplainedToken> {
    const described =
      (await this.transferCodes.describe(text)) ??
      (await this.customerRefreshTokens.describe(text)) ??
      (await this.authorizationCodes.describe(text)) ??
      (await this.agentRefreshTokens.describe(text));
    if (!described) return explained('code or refresh token', 'not_stored');
    const { kind, inactiveReason, ...stored } = described;
    const { clientId: client_id, organizationId: organization_id } = stored;
    const reason = this.registry.endedReason({ client_id, organization_id }) ?? inactiveReason;
    return { ...explained(kind, reason), stored };
  }

  private async endedReason(text: string, issuer: TrustedIssuer): Promise<InactiveReason | undefined> {
    try {
      await this.trustedIssuers.verify(text, issuer);
      return undefined;
    } catch (error) {
      if (!(error instanceof OAuthError) || error.status !== 401) throw error;
      return error.reason as InactiveReason;
    }
  }
}

function explained(kind: string, reason: InactiveReason | undefined): ExplainedToken {
  return { kind, valid: !reason, ...(reason && { reason, explanation: INACTIVE_REASONS[reason] }) };
}
