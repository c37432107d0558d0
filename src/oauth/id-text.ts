import { ValidateBy } from 'class-validator';

/** The maximum length of an id, in UTF-16 units. */
export const MAX_ID_CHARACTERS = 255;
/** The name of the rule for ids that another system chose. */
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

/** The rule of `isIdText` for a parameter. */
export const IsIdText = (): PropertyDecorator =>
  ValidateBy({
    name: IS_ID_TEXT,
    validator: {
      validate: isIdText,
      defaultMessage: () =>
        `must be 1 to ${MAX_ID_CHARACTERS} characters, without control characters and lone surrogates`,
    },
  });
