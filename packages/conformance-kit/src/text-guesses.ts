const DIGITS = '0123456789';
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';

/** After this number of candidates, no further value is likely to have the format. */
const MAX_CANDIDATE_COUNT = 10_000;

/**
 * Different wrong values of the same format that a rule accepts: first with the characters of the value, because a code
 * may be without vowels, then with all digits and letters.
 */
export function* wrongValues(value: string, accepts: (candidate: string) => boolean): Generator<string, undefined> {
  const known = new Set([value]);
  for (const characters of [value, value + DIGITS + LETTERS])
    for (let index = 1; index < MAX_CANDIDATE_COUNT; index++) {
      const candidate = candidateOf(value, index, characters);
      if (known.has(candidate) || !accepts(candidate)) continue;
      known.add(candidate);
      yield candidate;
    }
  return undefined;
}

/** A value whose last characters differ first. */
export function wrongValue(value: string, index: number): string {
  return candidateOf(value, index + 1, value + DIGITS + LETTERS);
}

/** Another value for each index, until all characters have had all values. */
function candidateOf(value: string, index: number, characters: string): string {
  const candidate = [...value];
  let rest = index;
  for (let at = candidate.length - 1; at >= 0; at--) {
    const character = candidate[at] as string;
    const alphabet = alphabetOf(characters, character);
    candidate[at] = alphabet[(alphabet.indexOf(character) + rest) % alphabet.length] as string;
    rest = Math.floor(rest / alphabet.length);
  }
  return candidate.join('');
}

/** The digits or letters of a text, for a digit or a letter of the same case. */
function alphabetOf(text: string, character: string): string {
  const kind = [/[0-9]/, /[a-z]/, /[A-Z]/].find((each) => each.test(character));
  return kind ? [...new Set(text)].filter((each) => kind.test(each)).join('') : character;
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
