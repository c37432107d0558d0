import { Matches } from 'class-validator';
import { UUID } from '../uuid.js';
import { rule } from './validation.js';

export const UUID_RULE = 'must be a UUID in lower case';

export const IsUuid = () => Matches(UUID, { message: UUID_RULE });

/** A client id (RFC 6749 appendix A.1), limited to characters that need no encoding in URLs and Basic credentials. */
export const IDENTIFIER = /^[A-Za-z0-9._~-]{1,128}$/;

export const IsIdentifier = () => Matches(IDENTIFIER, { message: 'must be 1 to 128 letters, digits or . _ ~ -' });

export const MAX_ID_CHARACTERS = 255;
export const IS_ID_TEXT = 'isIdText';
export const IS_WAIT_SECONDS = 'isWaitSeconds';

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

/** The form of the names of grants, extensions, limits and audit events. */
export const SNAKE_CASE_NAME = /^[a-z][a-z0-9_]{0,63}$/;

/** MariaDB ignores these spaces (PAD SPACE), so such texts share a limit. A regular expression takes quadratic time. */
export function withoutTrailingSpaces(text: string): string {
  let end = text.length;
  while (text[end - 1] === ' ') end--;
  return text.slice(0, end);
}

/** Some editors and clients write a byte order mark before UTF-8. A parser of JSON may ignore it (RFC 8259 §8.1). */
export const withoutByteOrderMark = (text: string): string => (text.startsWith('\uFEFF') ? text.slice(1) : text);
