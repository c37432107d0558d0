import { Matches } from 'class-validator';
import { UUID } from '../uuid.js';
import { rule } from './decorators.js';

export const UUID_RULE = 'must be a UUID in lower case';

export const IsUuid = () => Matches(UUID, { message: UUID_RULE });

/** A client id (RFC 6749 appendix A.1), limited to characters that need no encoding in URLs and Basic credentials. */
export const IDENTIFIER = /^[A-Za-z0-9._~-]{1,128}$/;

export const IsIdentifier = () => Matches(IDENTIFIER, { message: 'must be 1 to 128 letters, digits or . _ ~ -' });

export const MAX_ID_CHARACTERS = 255;
export const IS_ID_TEXT = 'isIdText';

/**
 * Whether a value is an id that another system may have chosen: 1 to 255 UTF-16 units without control characters.
 *
 * Lone surrogates are rejected: UTF-8 encodes all of them as the same character, so that two ids could be one.
 */
export function isIdText(value: unknown): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > MAX_ID_CHARACTERS) return false;
  return /^[^\p{Cc}\p{Cs}]*$/u.test(value);
}

export const IsIdText = () =>
  rule(
    IS_ID_TEXT,
    isIdText,
    `must be 1 to ${MAX_ID_CHARACTERS} characters, without control characters and lone surrogates`,
  );
