import { describe, expect, it } from 'vitest';
import { traceOf } from '../../src/platform/logging/trace.js';

const MARK = 'MARKED-secret';

describe('what the log tells of an error', () => {
  it("is without what a parser's or a database's message quotes", () => {
    const parsed = () => JSON.parse(`${MARK} is 'not' "JSON"`);
    expect(parsed).toThrow(SyntaxError);
    const errors = [
      caught(parsed),
      Object.assign(new Error(`Duplicate entry '${MARK}' for key "PRIMARY"`), { errno: 1062 }),
      Object.assign(new Error(`Incorrect value: "${MARK}'s" for column 'name'`), { errno: 1366 }),
      new Error('outer', { cause: caught(parsed) }),
    ];
    for (const error of errors) for (const stack of [true, false]) expect(traceOf(error, stack)).not.toContain(MARK);
  });

  it('is its name, its message, its causes and, where it is ours, from where', () => {
    const told = traceOf(new Error('outer', { cause: new TypeError('inner') }), true);
    expect(told).toMatch(/^Error: outer\n +at .*\ncaused by TypeError: inner\n +at /s);
    expect(traceOf(MARK, true)).toBe('string');
  });
});

function caught(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}
