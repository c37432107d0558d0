import { TokenVerifierError } from './errors.js';

/** Reads a bearer token (RFC 6750 §2.1). */
export function bearerToken(header: string | undefined): string {
  const [, token] = /^Bearer +([^\s,]+) *$/i.exec(header ?? '') ?? [];
  if (token === undefined) throw new TokenVerifierError('missing_token');
  return token;
}
