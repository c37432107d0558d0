import { describe, expect, it } from 'vitest';
import { guessRace, winsMostRaces } from '../src/guess-race.js';
import { GuessValues } from '../src/guess-values.js';

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
