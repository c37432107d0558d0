import { type ForeignJwts, InvalidJwt, unverifiedIssuer } from '../../oauth/foreign-jwts.js';
import type { AuditParty } from '../../platform/audit/audit-event.js';
import { type AdminRole, isAdminRole } from '../../platform/configuration/admin-tokens.js';
import { MAX_ACCESS_TOKEN_TTL_SECONDS } from '../../platform/configuration/configuration.js';
import type { AdminIssuer } from '../../platform/configuration/issuers.js';
import { isIdText } from '../../platform/validation/text-rules.js';
export interface Operator {
  actor: AuditParty;
  roles: AdminRole[];
}

/**
 * The operator of a token of the issuer in ADMIN_ISSUER, or why the token is not valid; `undefined` if it is of no such
 * issuer. A token without a known role is valid, and its role suffices for no route.
 *
 * @throws OAuthError 503 while the keys cannot be fetched
 */
export async function operatorOf(
  token: string,
  { issuer, audience, algorithms, typ, role_claim, jwks_uri }: AdminIssuer,
  jwts: ForeignJwts,
): Promise<Operator | string | undefined> {
  if (unverifiedIssuer(token) !== issuer) return undefined; // another token must not cause a fetch of the keys
  try {
    const { sub, [role_claim]: role } = await jwts.verify(token, {
      ...{ issuer, audience, isOnlyAudience: true, algorithms, types: [typ], mayBringKey: true, keys: { jwks_uri } },
      ...{ requiredClaims: ['exp', 'iat', 'sub'], maxLifetimeSeconds: MAX_ACCESS_TOKEN_TTL_SECONDS },
    });
    if (!isIdText(sub)) return 'token of the issuer: unusable sub';
    return { actor: { kind: 'operator', id: sub, issuer }, roles: rolesIn(role) };
  } catch (error) {
    if (error instanceof InvalidJwt) return `token of the issuer: ${error.message}`;
    throw error;
  }
}

const rolesIn = (claim: unknown): AdminRole[] => [claim].flat().filter(isAdminRole);
