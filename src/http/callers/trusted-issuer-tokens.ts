import { Injectable } from '@nestjs/common';
import type { JWTPayload } from 'jose';
import { type InactiveReason, inactiveToken } from '../../access-token/inactive-reason.js';
import { ForeignJwts, InvalidJwt, unverifiedIssuer } from '../../oauth/foreign-jwts.js';
import { Clock } from '../../platform/clock.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import type { TrustedIssuer } from '../../platform/configuration/issuers.js';
import { sha256 } from '../../platform/secret.js';
import { isWellFormed } from '../../platform/validation/validation.js';
import { TokenValidity } from '../../session/token-validity.js';
import type { AgentPrincipal } from './principal.js';

/** The size of the columns of a session. */
const MAX_CLAIM_CHARACTERS = 255;

/** Verifies agent tokens of the authorization servers in TRUSTED_AGENT_ISSUERS (protocol §6.10). */
@Injectable()
export class TrustedIssuerTokens {
  private readonly issuers: Map<unknown, TrustedIssuer>;

  constructor(
    { TRUSTED_AGENT_ISSUERS }: Configuration,
    private readonly clock: Clock,
    private readonly jwts: ForeignJwts,
    private readonly validity: TokenValidity,
  ) {
    this.issuers = new Map(TRUSTED_AGENT_ISSUERS.map((issuer) => [issuer.issuer, issuer]));
  }

  /** The trusted issuer that the `iss` claim of a token names. The token is not verified yet. */
  issuerOf(token: string): TrustedIssuer | undefined {
    return this.issuers.size === 0 ? undefined : this.issuers.get(unverifiedIssuer(token));
  }

  /** The agent is of a listed organization. @throws OAuthError `invalid_token`; 503 while the keys cannot be fetched */
  async verify(token: string, issuer: TrustedIssuer): Promise<Omit<AgentPrincipal, 'proof'>> {
    const claims = await this.claimsOf(token, issuer);
    const jti = tokenId(issuer, claims, token);
    const organizationId = claims[issuer.organization_claim];
    if (typeof organizationId !== 'string' || !issuer.organizations.includes(organizationId))
      throw inactiveToken('other_organization').about({ token: { jti } });
    const inactive = (reason: InactiveReason) => inactiveToken(reason).about({ organizationId, token: { jti } });
    const clientId = String(claims.client_id ?? claims.azp ?? issuer.issuer);
    const { sub } = claims;
    if (typeof sub !== 'string' || !isWellFormed([sub, clientId])) throw inactive('rejected_claim');
    if (Math.max(sub.length, clientId.length) > MAX_CLAIM_CHARACTERS) throw inactive('rejected_claim');
    const { iat = 0, exp } = claims;
    const session = { sid: jti, ep: 0 };
    const bearer = {
      jti,
      sub,
      client_id: clientId,
      organization_id: organizationId,
      iat,
      exp: exp as number,
      iss: issuer.issuer,
      ...session,
    };
    // a token without `iat` cannot show that it is from before a suspension
    const endedReason = await this.validity.endedReason({ ...bearer, iat: claims.iat ?? this.clock.seconds() });
    if (endedReason) throw inactive(endedReason);
    const scopes = scopesOf(claims[issuer.scope_claim]).filter((scope) => issuer.scopes.includes(scope));
    return { kind: 'agent', agentId: sub, organizationId, clientId, scopes, isFromTrustedIssuer: true, claims: bearer };
  }

  private async claimsOf(token: string, trusted: TrustedIssuer): Promise<JWTPayload> {
    const { issuer, audience, algorithms, typ, jwks_uri } = trusted;
    const rules = { issuer, audience, algorithms, types: [typ], mayBringKey: true, keys: { jwks_uri } };
    try {
      return await this.jwts.verify(token, { ...rules, requiredClaims: ['exp', 'sub'] });
    } catch (error) {
      if (!(error instanceof InvalidJwt)) throw error;
      const { code, claim, payload } = error;
      const inactive = inactiveToken(BY_CLAIM[claim] ?? BY_CODE[code] ?? 'malformed');
      throw payload ? inactive.about({ token: { jti: tokenId(trusted, payload, token) } }) : inactive;
    }
  }
}

/**
 * The id of a token as a session, and in the log. A hash, because a `jti` of the issuer may have any length. Without a
 * `jti`, the signed part identifies the token, because ECDSA accepts two signatures of it.
 */
function tokenId({ issuer }: TrustedIssuer, { jti }: JWTPayload, token: string): string {
  const hasId = typeof jti === 'string' && jti !== '';
  return sha256(`${issuer} ${hasId ? jti : token.slice(0, token.lastIndexOf('.'))}`);
}

function scopesOf(claim: unknown): string[] {
  if (Array.isArray(claim)) return claim.filter((scope) => typeof scope === 'string');
  return typeof claim === 'string' ? claim.split(' ') : [];
}

const BY_CODE: Record<string, InactiveReason> = {
  ERR_JWT_EXPIRED: 'expired',
  ERR_JWT_CLAIM_VALIDATION_FAILED: 'rejected_claim',
  ERR_JOSE_ALG_NOT_ALLOWED: 'rejected_claim',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'invalid_signature',
  ERR_JWKS_NO_MATCHING_KEY: 'unknown_key',
};
const BY_CLAIM: Record<string, InactiveReason> = { aud: 'other_audience', nbf: 'not_yet_valid', iat: 'not_yet_valid' };
