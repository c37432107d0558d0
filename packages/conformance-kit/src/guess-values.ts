import type { Type } from '@nestjs/common';
import type { Parameters } from './request.js';
import { isAccepted } from './rules/parameters.js';

const DIGITS = '0123456789';
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
/** After this number of candidates, no further value is likely to have the format. */
const MAX_CANDIDATES = 3_000;

/** Wrong values that the rules of a body accept, in the format of the right one. There may be fewer than `count`. */
export function wrongValues(body: Type<object> | undefined, right: Parameters, name: string, count: number): string[] {
  const value = `${right[name]}`;
  const found = new Set<string>();
  for (const alphabet of [value, value + DIGITS + LETTERS])
    for (let index = 1; index < MAX_CANDIDATES && found.size < count; index++) {
      const candidate = candidateOf(value, index, alphabet);
      if (candidate !== value && (!body || isAccepted(body, { ...right, [name]: candidate }))) found.add(candidate);
    }
  return [...found];
}

/** Another value for each index: digits and letters are replaced by those of the alphabet, the last ones first. */
function candidateOf(value: string, index: number, alphabet: string): string {
  const candidate = [...value];
  let rest = index;
  for (let at = candidate.length - 1; at >= 0 && rest > 0; at--) {
    const character = candidate[at] as string;
    const kind = [/[0-9]/, /[a-z]/, /[A-Z]/].find((each) => each.test(character));
    const characters = kind ? [...new Set(alphabet)].filter((each) => kind.test(each)) : [character];
    candidate[at] = characters[(characters.indexOf(character) + rest) % characters.length] as string;
    rest = Math.floor(rest / characters.length);
  }
  return candidate.join('');
}

const ALPHABETS: [pattern: RegExp, size: number][] = [
  [/^\d*$/, 10],
  [/^[\da-f]*$/i, 16],
  [/^[\da-z]*$/, 36],
  [/^[\dA-Z]*$/, 36],
  [/^[\da-z]*$/i, 62],
];

/** The bits of a random text with these characters, without its hyphens. */
export function estimatedBits(text: string): number {
  const characters = text.replaceAll('-', '');
  const size = ALPHABETS.find(([pattern]) => pattern.test(characters))?.[1] ?? 64;
  return characters.length * Math.log2(size);
}
