import { TokenVerifierError } from './errors.js';

/** What the adapters read of a request. */
export interface HeadersOfRequest {
  headers: { authorization?: string | undefined };
  /** Names and values in turn, as Node has them. */
  rawHeaders?: string[];
  /** On Fastify, the request of Node. */
  raw?: { rawHeaders?: string[] };
}

/** Reads a bearer token (RFC 6750 §2.1). `headers` has only the first of several headers `Authorization`. */
export function bearerToken({ headers, rawHeaders, raw }: HeadersOfRequest): string {
  const lines = rawHeaders ?? raw?.rawHeaders ?? [];
  const count = lines.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'authorization').length;
  const [, token] = /^Bearer +([^\s,]+) *$/i.exec(headers.authorization ?? '') ?? [];
  if (token === undefined || count > 1) throw new TokenVerifierError('missing_token');
  return token;
}
