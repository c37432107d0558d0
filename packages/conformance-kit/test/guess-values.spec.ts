import { Matches } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { GuessValues } from '../src/guess-values.js';
import { guessRace, winsMostRaces } from '../src/rules/guesses.js';

class OfConsonants {
  @Matches(/^[BCDFGHJKLM]{1,8}$/)
  code!: string;
}

class OfTwoDigits {
  @Matches(/^[12]{2,12}$/)
  code!: string;
}

class Loose {
  @Matches(/^\w{4}$/)
  code!: string;
}

const textOf = (alphabet: string, length: number) =>
  Array.from({ length }, () => alphabet[Math.floor(Math.random() * alphabet.length)]).join('');

describe('the wrong values of the kit', () => {
  it.each([
    ['of letters without vowels', OfConsonants, 'BCDFGHJKLM', [2, 4, 8]],
    ['of the digits 1 and 2', OfTwoDigits, '12', [3, 6, 12]],
  ] as const)('are accepted by the rules of a body, for 200 random codes %s', (_, body, alphabet, lengths) => {
    for (let run = 0; run < 200; run++) {
      const code = textOf(alphabet, lengths[run % 3] as number);
      const values = new GuessValues({ parameter: 'code', limit: 5 }, body, { code }, []).take(5);
      expect(new Set([code, ...values]).size).toBe(6);
      for (const value of values)
        expect(
          [...value].every((each) => alphabet.includes(each)),
          value,
        ).toBe(true);
    }
  });

  it('differ also if each letter of the right value is the same', () => {
    const values = new GuessValues({ parameter: 'code', limit: 3 }, OfConsonants, { code: 'BBBB' }, []).take(3);
    expect(new Set(['BBBB', ...values]).size).toBe(4);
  });

  it('have the characters of other right values, in any place', () => {
    const issued = [{ code: '2A2A' }, { code: 'BB22' }];
    const values = new GuessValues({ parameter: 'code', limit: 3 }, Loose, { code: 'AAAA' }, issued).take(3);
    expect(values.join('')).toMatch(/^[2AB]{12}$/);
    expect(new Set(values).size).toBe(3);
  });

  it('are values of other requests only if there are no others', () => {
    const issued = ['11', '12', '21'].map((code) => ({ code }));
    const values = new GuessValues({ parameter: 'code', limit: 3 }, OfTwoDigits, { code: '11' }, issued);
    expect(values.take(3)).toEqual(['22', '12', '21']);
  });

  it('are those of the author if the test declares `wrong`', () => {
    const wrong = (right: string, index: number) => `${right}${index}`;
    expect(new GuessValues({ parameter: 'code', limit: 2, wrong }, OfTwoDigits, { code: '1' }, []).take(2)).toEqual([
      '10',
      '11',
    ]);
  });

  it('are reported as too few if the rules accept fewer than the limit', () => {
    const values = new GuessValues({ parameter: 'code', limit: 5 }, OfTwoDigits, { code: '11' }, []);
    expect(() => values.take(5)).toThrow(
      'code: the kit finds too few wrong values for 5 guesses; return them by `wrong`',
    );
  });
});

const raceOf = (limit: number, right: string) => {
  const guessable = { parameter: 'code', limit };
  return guessRace(guessable, new GuessValues(guessable, undefined, { code: right }, []), right);
};

describe('a race of guesses', () => {
  it.each([
    [1, 20],
    [5, 50],
  ])('has the right value once, among different wrong ones, with the limit %i', (limit, wrongCount) => {
    const { values, at } = raceOf(limit, '123456') ?? { values: [], at: -1 };
    expect([new Set(values).size, values.length]).toEqual([wrongCount + 1, wrongCount + 1]);
    expect(values.indexOf('123456')).toBe(at);
  });

  it('does not take place if there are too few wrong values', () => {
    const guessable = { parameter: 'code', limit: 1, wrong: (right: string, index: number) => `${right}${index % 19}` };
    expect(guessRace(guessable, new GuessValues(guessable, undefined, { code: '1' }, []), '1')).toBeUndefined();
  });

  it('says nothing if the right value loses three of ten, or if the limit is high', async () => {
    const guessable = { parameter: 'code', limit: 20 };
    let count = 0;
    expect(await winsMostRaces(guessable, async () => ++count > 3)).toBe(false);
    count = 0;
    expect(await winsMostRaces(guessable, async () => ++count > 2)).toBe(true);
    expect(await winsMostRaces(guessable, async () => true)).toBe(true);
    expect(await winsMostRaces({ ...guessable, limit: 21 }, async () => true)).toBe(false);
  });
});
