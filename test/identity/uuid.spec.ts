import fc from 'fast-check';
import { expect, it } from 'vitest';
import { UUID, uuidv7 } from '../../src/platform/uuid.js';

const MAX_TIME_MS = 2 ** 48 - 1;

it('UUIDv7 (RFC 9562 §5.7) contains its version, its variant and the milliseconds of its creation', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: MAX_TIME_MS }), (now) => {
      const id = uuidv7(now);
      expect(id).toMatch(UUID);
      expect(id).toMatch(/^.{14}7.{4}[89ab]/);
      expect(Number.parseInt(id.slice(0, 13).replace('-', ''), 16)).toBe(now);
    }),
  );
});

it('UUIDv7 is unique even within one millisecond', () => {
  const ids = Array.from({ length: 10_000 }, () => uuidv7(1_800_000_000_000));
  expect(new Set(ids).size).toBe(ids.length);
});

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
])('the text of a UUID is invalid with %s', (_, text) => {
  expect(text).not.toMatch(UUID);
});
