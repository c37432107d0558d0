/** Those of RFC 7519 §4.1, RFC 9068 §2.2, RFC 7662 §2.2 and protocol §3.3, and the fields of token info. */
export const RESERVED_CLAIMS: ReadonlySet<string> = new Set([
  ...['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti'],
  ...['client_id', 'auth_time', 'acr', 'amr', 'scope', 'groups', 'roles', 'entitlements'],
  ...['active', 'username', 'token_type'],
  ...['organization_id', 'gen', 'sid', 'ep', 'act', 'gty', 'group_id', 'user_verified', 'entity_id', 'cnf', 'may_act'],
  ...['access_token', 'expires_in'],
]);

export function declaredClaimsOf(claims: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(claims).filter(([name]) => !RESERVED_CLAIMS.has(name)));
}
