const DIGITS = '0123456789';

/** A wrong value of the same format, another one for each index. Its last digit or letter always differs. */
export function wrongValue(value: string, index: number): string {
  const characters = [...value];
  let rest = index;
  let isLast = true;
  for (let at = characters.length - 1; at >= 0; at--) {
    const character = characters[at] as string;
    const alphabet = alphabetOf(value, character);
    if (alphabet.length < 2) continue;
    const choices = isLast ? alphabet.length - 1 : alphabet.length;
    const step = (rest % choices) + (isLast ? 1 : 0);
    characters[at] = alphabet[(alphabet.indexOf(character) + step) % alphabet.length] as string;
    rest = Math.floor(rest / choices);
    isLast = false;
  }
  return characters.join('');
}

/** All digits for a digit. For a letter, only letters of the value, because a code may be without vowels. */
function alphabetOf(value: string, character: string): string {
  if (DIGITS.includes(character)) return DIGITS;
  const letters = [/[a-z]/, /[A-Z]/].find((each) => each.test(character));
  return letters ? [...new Set(value)].filter((each) => letters.test(each)).join('') : character;
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
