import { randomInt } from 'node:crypto';

// cspell:ignore BCDFGHJKLMNPQRSTVWXZ WDJBMJHT

/** Consonants only, so that no code is a word and no two letters look the same (RFC 8628 §6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const LETTER_COUNT = 8;

/** A code that a customer can read and type, such as `WDJBMJHT`: 20^8 values. */
export const newUserCode = (): string =>
  Array.from({ length: LETTER_COUNT }, () => LETTERS[randomInt(LETTERS.length)]).join('');

/** Customers may type lower case letters, spaces and hyphens. */
export const USER_CODE = /^[A-Za-z -]{8,20}$/;

/** The code as the service stored it. */
export const normalizedUserCode = (typed: string): string => typed.replace(/[ -]/g, '').toUpperCase();
