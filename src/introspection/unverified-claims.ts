const NAMES = ['iss', 'aud', 'sub', 'client_id', 'organization_id', 'iat', 'exp', 'jti'];
/** Longer values are cut off. */
const MAX_VALUE_CHARACTERS = 200;

/**
 * What the header and the payload of a JWS claim, without verification. For the operator's terminal, never for a log.
 *
 * @returns `undefined` if the text is no JWS
 */
export function unverifiedClaims(text: string): Record<string, unknown> | undefined {
  const [header = '', payload = '', ...more] = text.slice(text.indexOf(':') + 1).split('.');
  if (more.length !== 1) return undefined;
  const claims = decoded(payload);
  const { kid } = decoded(header) ?? {};
  if (!claims) return undefined;
  const named = NAMES.map((name) => [name, claims[name]] as const);
  return Object.fromEntries([...named, ['kid', kid] as const].flatMap(([name, value]) => shown(name, value)));
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
