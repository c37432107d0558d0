const DIGITS = '0123456789';
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';

/** After this number of candidates, no further value is likely to have the format. */
const MAX_CANDIDATE_COUNT = 3_000;

/**
 * Different wrong values that a rule accepts, in the format of the right one: first with its own characters, because a
 * code may be without vowels, then with those of other right values in any place, then with all digits and letters.
 * The other right values come last.
 */
export function* wrongValues(
  value: string,
  others: Set<string>,
  accepts: (candidate: string) => boolean,
): Generator<string, undefined> {
  const known = new Set([value, ...others]);
  const anyOfOthers = [...new Set([value, ...others].join(''))].join('');
  const alphabets = [sameKindOf(value), () => anyOfOthers, sameKindOf(value + DIGITS + LETTERS)];
  for (const alphabet of alphabets)
    for (let index = 1; index < MAX_CANDIDATE_COUNT; index++) {
      const candidate = candidateOf(value, index, alphabet);
      if (known.has(candidate) || !accepts(candidate)) continue;
      known.add(candidate);
      yield candidate;
    }
  for (const other of others) if (other !== value && accepts(other)) yield other;
  return undefined;
}

/** A value whose last characters differ first. */
export function wrongValue(value: string, index: number): string {
  return candidateOf(value, index + 1, sameKindOf(value + DIGITS + LETTERS));
}

/** The characters that may replace a character. */
type Alphabet = (character: string) => string;

/** Another value for each index, until all characters have had all values. */
function candidateOf(value: string, index: number, alphabetOf: Alphabet): string {
  const candidate = [...value];
  let rest = index;
  for (let at = candidate.length - 1; at >= 0; at--) {
    const character = candidate[at] as string;
    const alphabet = [...alphabetOf(character)];
    candidate[at] = alphabet[(alphabet.indexOf(character) + rest) % alphabet.length] as string;
    rest = Math.floor(rest / alphabet.length);
  }
  return candidate.join('');
}

/** The digits or letters of a text, for a digit or a letter of the same case. */
function sameKindOf(text: string): Alphabet {
  return (character) => {
    const kind = [/[0-9]/, /[a-z]/, /[A-Z]/].find((each) => each.test(character));
    return kind ? [...new Set(text)].filter((each) => kind.test(each)).join('') : character;
  };
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
