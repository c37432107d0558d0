import { Injectable } from '@nestjs/common';
import { type AccessTokenClaims, OPAQUE_TOKEN } from '../access-token/access-tokens.js';
import { INACTIVE_REASONS, type InactiveReason, type StoredToken } from '../access-token/inactive-reason.js';
import { type Issuer, TrustedIssuerTokens } from '../bearer/trusted-issuer-tokens.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Registry } from '../registry/registry.js';
import { AgentRefreshTokens } from '../session/agent/agent-refresh-tokens.js';
import { AuthorizationCodes } from '../session/agent/authorization-codes.js';
import { CustomerRefreshTokens } from '../session/customer-refresh-tokens.js';
import { TokenInspection } from '../session/token-validity.js';
import { TransferCodes } from '../session/transfer-codes.js';

export interface ExplainedToken {
  kind: string;
  valid: boolean;
  reason?: InactiveReason;
  explanation: string;
  /** The claims of an access token with a valid signature. */
  claims?: AccessTokenClaims;
  /** What a token without a valid signature claims. An attacker may have written them. */
  unverified_claims?: Record<string, unknown>;
  stored?: StoredToken;
  /** The same for the text that the caller should have sent. */
  corrected?: ExplainedToken;
}

/** The longest text that is looked at. A valid access token has at most about 4 KB. */
const MAX_TOKEN_CHARACTERS = 16_384;

/** Explains to the operator what a token is (protocol §9.3). It changes nothing. */
@Injectable()
export class TokenExplanation {
  constructor(
    private readonly configuration: Configuration,
    private readonly tokens: TokenInspection,
    private readonly trustedIssuers: TrustedIssuerTokens,
    private readonly transferCodes: TransferCodes,
    private readonly customerRefreshTokens: CustomerRefreshTokens,
    private readonly authorizationCodes: AuthorizationCodes,
    private readonly agentRefreshTokens: AgentRefreshTokens,
    private readonly registry: Registry,
  ) {}

  async explain(text: string): Promise<ExplainedToken> {
    if (text.length > MAX_TOKEN_CHARACTERS) return inactive('unknown text', 'malformed');
    if (OPAQUE_TOKEN.test(text)) return this.explainOpaque(text);
    const issuer = this.trustedIssuers.issuerOf(text);
    if (issuer) return this.explainTrustedIssuerToken(text, issuer);
    const { claims, inactiveReason } = await this.tokens.inspect(text);
    const kind = claims?.aud === 'agent-api' ? 'agent access token' : 'customer access token';
    if (!inactiveReason) return { ...valid(kind), claims };
    if (claims) return { ...inactive(kind, inactiveReason), claims };
    const unverified = unverifiedClaims(text);
    const corrected = await this.explainCorrected(text, inactiveReason);
    return {
      ...inactive(unverified ? 'access token without a valid signature' : 'unknown text', inactiveReason),
      ...(unverified && { unverified_claims: unverified }),
      ...(corrected && { corrected }),
    };
  }

  private async explainOpaque(text: string): Promise<ExplainedToken> {
    const stored = await this.storedToken(text);
    if (!stored) return inactive('code or refresh token', 'not_stored');
    const { kind, clientId: client_id, organizationId: organization_id } = stored;
    const inactiveReason = this.registry.endedReason({ client_id, organization_id }) ?? stored.inactiveReason;
    return { ...(inactiveReason ? inactive(kind, inactiveReason) : valid(kind)), stored };
  }

  private async storedToken(text: string): Promise<StoredToken | undefined> {
    const ofCustomer = (await this.transferCodes.describe(text)) ?? (await this.customerRefreshTokens.describe(text));
    return ofCustomer ?? (await this.authorizationCodes.describe(text)) ?? this.agentRefreshTokens.describe(text);
  }

  private async explainTrustedIssuerToken(text: string, issuer: Issuer): Promise<ExplainedToken> {
    const kind = 'agent token of a trusted issuer';
    try {
      await this.trustedIssuers.verify(text, issuer);
      return valid(kind);
    } catch (error) {
      if (!(error instanceof OAuthError) || error.status !== 401) throw error;
      return inactive(kind, error.reason as InactiveReason);
    }
  }

  private async explainCorrected(text: string, reason: InactiveReason): Promise<ExplainedToken | undefined> {
    if (reason === 'no_region') return this.explain(`${this.configuration.TOKEN_REGION}:${text}`);
    return reason === 'percent_encoded' ? this.explain(text.replaceAll(/%3a/gi, ':')) : undefined;
  }
}

const valid = (kind: string) => ({ kind, valid: true, explanation: `This service accepts the ${kind}.` });

function inactive(kind: string, reason: InactiveReason): ExplainedToken {
  return { kind, valid: false, reason, explanation: INACTIVE_REASONS[reason] };
}

const NAMES = ['iss', 'aud', 'sub', 'client_id', 'organization_id', 'iat', 'exp', 'jti', 'kid'];
const MAX_VALUE_CHARACTERS = 200;

/** Not verified: for the operator's terminal, never for a log. `undefined` if the text is no JWS. */
function unverifiedClaims(text: string): Record<string, unknown> | undefined {
  const [header = '', payload = '', ...more] = text.slice(text.indexOf(':') + 1).split('.');
  if (more.length !== 1) return undefined;
  const claims = decoded(payload);
  if (!claims) return undefined;
  const named = { ...claims, kid: decoded(header)?.kid };
  return Object.fromEntries(NAMES.flatMap((name) => shown(name, Reflect.get(named, name))));
}

function decoded(segment: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(segment, 'base64url').toString());
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function shown(name: string, value: unknown): [string, unknown][] {
  if (typeof value === 'number') return [[name, value]];
  return typeof value === 'string' ? [[name, value.slice(0, MAX_VALUE_CHARACTERS)]] : [];
}
