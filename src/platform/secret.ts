import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** 32 random bytes as text. Every secret that the service generates comes from here. */
export function randomSecret(encoding: 'hex' | 'base64url'): string {
  return randomBytes(32).toString(encoding);
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
