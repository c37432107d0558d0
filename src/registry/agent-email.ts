import { domainToASCII } from 'node:url';
import { isEmail } from 'class-validator';
import { isWellFormed } from '../platform/validation/validation.js';

const MAX_CHARACTERS = 254;
/** The texts that `type=email` of browsers accepts: no quoted local part, and none outside ASCII. */
const FORM = { require_tld: false, allow_utf8_local_part: false, blacklisted_chars: '"' };

/**
 * The form in which emails are stored and compared: in lower case, with the domain in ASCII (RFC 5891) and without the
 * dot of the root, because browsers post `type=email` with such a domain. `undefined` if the text is no email.
 */
export function canonicalEmail(text: string): string | undefined {
  if (!isWellFormed(text)) return undefined; // `isEmail` throws a URIError
  const email = text.replace(/\.$/, '');
  const domainAt = email.lastIndexOf('@') + 1;
  const canonical = email.slice(0, domainAt).toLowerCase() + domainToASCII(email.slice(domainAt));
  // also the text itself, because `domainToASCII` accepts a port, a path and percent-encoding
  const isValid = isEmail(email, FORM) && isEmail(canonical, FORM) && canonical.length <= MAX_CHARACTERS;
  return isValid ? canonical : undefined;
}

/** For comparisons with stored emails. A text that is no email equals none of them. */
export const comparableEmail = (text: string): string => canonicalEmail(text) ?? text.toLowerCase();
