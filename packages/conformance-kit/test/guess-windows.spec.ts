import { describe, expect, it } from 'vitest';
import { secondsUntilWindow } from '../src/guesses-in-window.js';

describe('the guesses of the conformance kit', () => {
  it.each([
    ['at once if the window has enough time left', 1_200, [600], 0],
    ['in the next window if the window ends within a minute', 1_799, [600], 1],
    ['after the end of both windows', 3_541, [600, 3_600], 59],
    ['in the first half of a short window', 1_207, [10], 3],
    ['at once if no limit is declared', 1_799, [], 0],
  ])('begin %s', (_case, nowSeconds, windowsSeconds, expected) => {
    expect(secondsUntilWindow(nowSeconds, windowsSeconds)).toBe(expected);
  });
});
