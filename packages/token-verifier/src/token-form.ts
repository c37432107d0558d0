import { decodeProtectedHeader, type ProtectedHeaderParameters } from 'jose';
import { TokenVerifierError } from './errors.js';

/** Longer than any token of the service, which accepts no longer text at its introspection route. */
const MAX_TOKEN_CHARACTERS = 8_192;
const ACCESS_TOKEN = /^(?:[A-Za-z0-9-]{1,16}:)?([\w-]+\.[\w-]+\.([\w-]+))$/;
/** A transfer token, an authorization code or a refresh token. */
const OPAQUE_TOKEN = /^(?:[A-Za-z0-9-]{1,16}:)?(?:[\w-]{22}\.)?[\w-]{43}$/;
/** 64 bytes in base64url have unused bits at the end, which must be 0. ECDSA still accepts two signatures. */
const CANONICAL_SIGNATURE = /^[\w-]{85}[AQgw]$/;

/** A token in the form of an access token, whose signature is not checked yet. */
export interface ParsedToken {
  /** The token without the region prefix. */
  jws: string;
  kid: string;
}

/** Splits `REGION:JWS` or a bare JWS, and checks the header. */
export function parseToken(token: unknown): ParsedToken {
  if (typeof token !== 'string' || token.length > MAX_TOKEN_CHARACTERS) throw new TokenVerifierError('malformed');
  const [, jws, signature] = ACCESS_TOKEN.exec(token) ?? [];
  if (jws === undefined || signature === undefined) throw new TokenVerifierError(codeOfForm(token));
  const { typ, alg, kid } = headerOf(jws);
  if (typ !== 'at+jwt' || alg !== 'ES256') throw new TokenVerifierError('not_an_access_token');
  if (typeof kid !== 'string') throw new TokenVerifierError('unknown_key');
  if (!CANONICAL_SIGNATURE.test(signature)) throw new TokenVerifierError('invalid_signature');
  return { jws, kid };
}

function codeOfForm(token: string) {
  if (/%3a/i.test(token)) return 'percent_encoded';
  return OPAQUE_TOKEN.test(token) ? 'not_an_access_token' : 'malformed';
}

function headerOf(jws: string): ProtectedHeaderParameters {
  try {
    return decodeProtectedHeader(jws);
  } catch (cause) {
    throw new TokenVerifierError('malformed', { cause });
  }
}
