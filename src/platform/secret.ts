import { createHmac, hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';

/** 32 random bytes as text. Every secret that the service generates comes from here. */
export function randomSecret(encoding: 'hex' | 'base64url', size = 32): string {
  return randomBytes(size).toString(encoding);
}

/** A secret that a person can type. Its hash needs a key, because it could be found from a hash alone. */
export function randomDigits(count: number): string {
  return String(randomInt(10 ** count)).padStart(count, '0');
}

/** HMAC-SHA-256, which only the holder of the secret can compute. */
export function derivedSecret(secret: string, nonce: string): string {
  return createHmac('sha256', secret).update(nonce).digest('base64url');
}

/**
 * SHA-256 in lower-case hex. Random secrets are stored only in this form. Passwords need a slow hash (protocol §8.8).
 */
export function sha256(text: string): string {
  return hash('sha256', text, 'hex');
}

/** Compares two texts in a time that does not reveal where they differ. Their lengths are not secret. */
export function equalInConstantTime(one: string, other: string): boolean {
  const left = Buffer.from(one);
  const right = Buffer.from(other);
  return left.length === right.length && timingSafeEqual(left, right);
}
