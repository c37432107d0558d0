/** Members that only a private or a symmetric key has (RFC 7518 §6). */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/** Whether a value is a JWK without the private part of a key. */
export function isPublicJwk(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !PRIVATE_MEMBERS.some((member) => member in value);
}

/** Whether a value is a JWK Set of public keys. An issuer that publishes a private key has lost all its keys. */
export function isPublicJwkSet(value: unknown): value is { keys: object[] } {
  const keys = (value as { keys?: unknown } | null)?.keys;
  return Array.isArray(keys) && keys.every(isPublicJwk);
}
