import type { InactiveReason } from './inactive-reason.js';

const JWS = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** The random part of a transfer token or an authorization code, or the two parts of a refresh token (protocol §3.5). */
const OPAQUE = /^([\w-]{22}\.)?[\w-]{43}$/;
const REGION = /^[A-Za-z0-9-]{1,16}:/;

/** Why a text is no access token, if it does not begin with the region prefix of this service. */
export function reasonOfForeignText(text: string): InactiveReason {
  if (/%3a/i.test(text)) return 'percent_encoded';
  if (JWS.test(text)) return 'no_region';
  return REGION.test(text) ? 'other_region' : 'malformed';
}

/** Why a text is no access token, if its part after the region prefix is no JWS. */
export function reasonOfForm(token: string): InactiveReason {
  return OPAQUE.test(token.slice(token.indexOf(':') + 1)) ? 'not_an_access_token' : 'malformed';
}
