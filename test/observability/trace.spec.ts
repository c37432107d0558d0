import { describe, expect, it } from 'vitest';
import { traceOf } from '../../src/platform/logging/log.js';

const MARKER = 'MARKED-secret';

describe('the log text of an error', () => {
  it('omits the input that the messages of parsers and databases quote', () => {
    const parsed = () => JSON.parse(`${MARKER} is 'not' "JSON"`);
    expect(parsed).toThrow(SyntaxError);
    const errors = [
      caught(parsed),
      Object.assign(new Error(`Duplicate entry '${MARKER}' for key "PRIMARY"`), { errno: 1062 }),
      Object.assign(new Error(`Incorrect value: "${MARKER}'s" for column 'name'`), { errno: 1366 }),
      new Error('outer', { cause: caught(parsed) }),
    ];
    for (const error of errors) for (const stack of [true, false]) expect(traceOf(error, stack)).not.toContain(MARKER);
  });

  it('names the limit of the server that an account has reached, and not the account', () => {
    const text = `User '${MARKER}' has exceeded the 'max_user_connections' resource (current value: 5)`;
    const error = Object.assign(new Error(text), { errno: 1226 });
    expect(traceOf(error, false)).toBe(
      "Error: User … has exceeded the 'max_user_connections' resource (current value: 5)",
    );
  });

  it('contains its name, its message, its causes and the stack frames of the service', () => {
    const text = traceOf(new Error('outer', { cause: new TypeError('inner') }), true);
    expect(text).toMatch(/^Error: outer\n +at .*\ncaused by TypeError: inner\n +at /s);
    expect(traceOf(MARKER, true)).toBe('string');
  });
});

function caught(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}
