/** Members that only a private or a symmetric key has (RFC 7518 §6). */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/** Whether a value is a JWK without private members. */
export function isPublicJwk(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !PRIVATE_MEMBERS.some((member) => member in value);
}

/**
 * Whether a value is a JWK Set of public keys. One private key invalidates the set: the other keys may be exposed too.
 */
export function isPublicJwkSet(value: unknown): value is { keys: object[] } {
  const keys = (value as { keys?: unknown } | null)?.keys;
  return Array.isArray(keys) && keys.every(isPublicJwk);
}
