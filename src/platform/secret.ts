import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** 32 random bytes: what every secret of this service is made of. */
export function randomSecret(encoding: 'hex' | 'base64url'): string {
  return randomBytes(32).toString(encoding);
}

/** SHA-256 in lower-case hex: the only form in which a random secret is stored. Not for passwords. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Compares two texts in a time that does not tell where they differ; their lengths are no secret. */
export function equalInConstantTime(one: string, other: string): boolean {
  const left = Buffer.from(one);
  const right = Buffer.from(other);
  return left.length === right.length && timingSafeEqual(left, right);
}
