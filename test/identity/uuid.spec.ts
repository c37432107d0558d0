import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UUID, uuidv7 } from '../../src/platform/uuid.js';

const MAX_TIME_MS = 2 ** 48 - 1;
const moment = () => fc.integer({ min: 0, max: MAX_TIME_MS });

describe('UUIDv7 (RFC 9562 §5.7)', () => {
  it('contains its version, its variant and the milliseconds of its creation', () => {
    fc.assert(
      fc.property(moment(), (now) => {
        const id = uuidv7(now);
        expect(id).toMatch(UUID);
        expect(id).toMatch(/^.{14}7.{4}[89ab]/);
        expect(Number.parseInt(id.slice(0, 13).replace('-', ''), 16)).toBe(now);
      }),
    );
  });

  it('sorts as text by the time of its creation', () => {
    fc.assert(
      fc.property(moment(), moment(), (one, other) => {
        fc.pre(one !== other);
        expect(uuidv7(one) < uuidv7(other)).toBe(one < other);
      }),
    );
  });

  it('is unique even within one millisecond', () => {
    const ids = Array.from({ length: 10_000 }, () => uuidv7(1_800_000_000_000));
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('the text of a UUID', () => {
  const ID = '018cc251-f400-7000-8000-0123456789ab';

  it.each([
    ['upper case', ID.toUpperCase()],
    ['braces', `{${ID}}`],
    ['no hyphens', ID.replaceAll('-', '')],
    ['one digit less', ID.slice(0, -1)],
    ['one digit more', `${ID}0`],
    ['a line break after it', `${ID}\n`],
    ['a space before it', ` ${ID}`],
    ['a letter beyond f', ID.replace('a', 'g')],
    ['nothing', ''],
  ])('is invalid with %s', (_, text) => {
    expect(text).not.toMatch(UUID);
  });
});
