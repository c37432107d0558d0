import type { errors } from 'jose';
import { jose } from '../../oauth/foreign-jwt.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { RemoteKeySet } from '../../oauth/remote-key-set.js';
import type { AuditParty } from '../../platform/audit/audit-event.js';
import type { Clock } from '../../platform/clock.js';
import { type AdminRole, isAdminRole } from '../../platform/configuration/admin-tokens.js';
import { MAX_ACCESS_TOKEN_TTL_SECONDS } from '../../platform/configuration/configuration.js';
import type { AdminIssuer } from '../../platform/configuration/issuers.js';
import { isWellFormed } from '../../platform/validation/validation.js';
export interface Operator {
  actor: AuditParty;
  roles: AdminRole[];
}

const MAX_SUBJECT_CHARACTERS = 255;

/** Verifies the JWTs of the issuer in ADMIN_ISSUER, which are admin tokens too (protocol §9.1). */
export class OperatorIssuer {
  private readonly keySet: RemoteKeySet;

  constructor(
    private readonly trusted: AdminIssuer,
    clock: Clock,
  ) {
    this.keySet = new RemoteKeySet(trusted.jwks_uri, clock);
  }

  /**
   * The operator of a token, or why the token is not valid; `undefined` if it is of no such issuer. A token without a
   * known role is valid, and its role suffices for no route.
   *
   * @throws OAuthError 503 while the keys cannot be fetched
   */
  async operatorOf(token: string): Promise<Operator | string | undefined> {
    if (!this.isNamedIn(token)) return undefined;
    const { issuer, audience, algorithms, typ, role_claim } = this.trusted;
    try {
      const rules = { issuer, audience, algorithms, typ, requiredClaims: ['exp', 'iat', 'sub'] };
      const { sub, aud, iat = 0, exp = 0, [role_claim]: role } = await this.keySet.verify(token, rules);
      if (Array.isArray(aud) && aud.length > 1) return 'token of the issuer: more than one audience';
      if (exp - iat > MAX_ACCESS_TOKEN_TTL_SECONDS) return 'token of the issuer: its lifetime is too long';
      if (!isSubject(sub)) return 'token of the issuer: unusable sub';
      return { actor: { kind: 'operator', id: sub, issuer }, roles: rolesIn(role) };
    } catch (error) {
      if (error instanceof OAuthError) throw error;
      return `token of the issuer: ${(error as errors.JOSEError).code ?? 'malformed'}`;
    }
  }

  /** The token is not verified yet. Another token must not cause a fetch of the keys. */
  private isNamedIn(token: string): boolean {
    try {
      return jose().decodeJwt(token).iss === this.trusted.issuer;
    } catch {
      return false;
    }
  }
}

function isSubject(sub: unknown): sub is string {
  return typeof sub === 'string' && sub !== '' && sub.length <= MAX_SUBJECT_CHARACTERS && isWellFormed([sub]);
}

const rolesIn = (claim: unknown): AdminRole[] => [claim].flat().filter(isAdminRole);
