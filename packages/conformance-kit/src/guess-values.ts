import type { Type } from '@nestjs/common';
import { readParameters } from 'customer-authorization-service/testing-host';
import type { GuessableParameter } from './grant-kit.js';
import type { Parameters } from './token-request.js';

/** Gives wrong values of a parameter that the rules of the body accept, because others are no guesses. */
export class GuessValues {
  private readonly values: Iterator<string, undefined>;

  /**
   * @param body the class whose rules accept the values; without it, values of the same format are right
   * @param issued the parameters of other requests: a grant without handles may know their values
   */
  constructor(
    private readonly guessable: GuessableParameter,
    body: Type<object> | undefined,
    parameters: Parameters,
    issued: Parameters[],
  ) {
    const { parameter, wrong } = guessable;
    const right = `${parameters[parameter]}`;
    const accepts = (value: string) => !body || isAccepted(body, { ...parameters, [parameter]: value });
    const others = new Set(issued.map((each) => `${each[parameter]}`));
    this.values = wrong ? given(right, wrong) : wrongValues(right, others, accepts);
  }

  /** @throws Error if there are fewer values */
  take(count: number): string[] {
    const values = this.takeUpTo(count);
    if (values.length === count) return values;
    const { parameter, limit } = this.guessable;
    throw new Error(
      `${parameter}: the kit finds too few wrong values for ${limit} guesses; return them by \`wrong\` of \`guessable\``,
    );
  }

  /** As `take`, or all values if there are fewer. */
  takeUpTo(count: number): string[] {
    const values: string[] = [];
    while (values.length < count) {
      const { value } = this.values.next();
      if (value === undefined) break;
      values.push(value);
    }
    return values;
  }
}

function* given(right: string, wrong: (right: string, index: number) => string): Generator<string, undefined> {
  for (let index = 0; index < 10_000; index++) yield wrong(right, index);
  return undefined;
}

export function isAccepted(body: Type<object>, parameters: Parameters): boolean {
  try {
    readParameters(body, parameters);
    return true;
  } catch {
    return false;
  }
}

const DIGITS = '0123456789';
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';

/** After this number of candidates, no further value is likely to have the format. */
const MAX_CANDIDATE_COUNT = 3_000;

/**
 * Different wrong values that a rule accepts, in the format of the right one: first with its own characters, because a
 * code may be without vowels, then with those of other right values in any place, then with all digits and letters.
 * The other right values come last.
 */
function* wrongValues(
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
