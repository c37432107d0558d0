import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cursorAfter, startOfPage } from '../../src/registry/page-query.js';
import { randomRuns } from '../nightly.js';

const lists = fc.constantFrom('organizations', 'clients', 'agents', 'resource_servers');
const keys = fc.stringMatching(/^[A-Za-z0-9._~-]{1,128}$/);

/** `undefined` if the cursor is rejected. */
function keyOfCursor(list: string, cursor: string): string | undefined {
  try {
    return startOfPage(list, { cursor });
  } catch (error) {
    expect(error).toMatchObject({ hint: 'cursor: not a next_cursor of this list' });
    return undefined;
  }
}

describe('the cursor of a list', () => {
  it('gives back the key from which it was made', () => {
    fc.assert(
      fc.property(lists, keys, (list, key) => {
        expect(keyOfCursor(list, cursorAfter(list, key))).toBe(key);
      }),
    );
  });

  it('needs no encoding in a query', () => {
    fc.assert(
      fc.property(lists, keys, (list, key) => {
        expect(cursorAfter(list, key)).toMatch(/^[\w-]+$/);
      }),
    );
  });

  it('is rejected for any text that no list has returned', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc.base64String(),
      fc.string().map((text) => Buffer.from(text).toString('base64url')),
      fc.tuple(lists, fc.string()).map(([list, key]) => Buffer.from(`1 ${list} ${key}`).toString('base64url')),
    );
    fc.assert(
      fc.property(lists, texts, (list, text) => {
        const key = keyOfCursor(list, text);
        if (key !== undefined) expect(text).toBe(cursorAfter(list, key));
      }),
      randomRuns(2_000),
    );
  });

  it('is rejected after any change of one character', () => {
    fc.assert(
      fc.property(
        lists,
        keys,
        fc.nat(),
        fc.string({ minLength: 1, maxLength: 1 }),
        (list, key, position, character) => {
          const cursor = cursorAfter(list, key);
          const at = position % cursor.length;
          const changed = cursor.slice(0, at) + character + cursor.slice(at + 1);
          const read = keyOfCursor(list, changed);
          if (read !== undefined) expect(cursorAfter(list, read)).toBe(changed);
          if (changed !== cursor) expect(read).not.toBe(key);
        },
      ),
      randomRuns(1_000),
    );
  });

  it.each([
    ['of another version', Buffer.from('2 clients x').toString('base64url')],
    ['with a space in its key', Buffer.from('1 clients a b').toString('base64url')],
    ['with an empty key', Buffer.from('1 clients ').toString('base64url')],
    ['with a key of 129 characters', Buffer.from(`1 clients ${'k'.repeat(129)}`).toString('base64url')],
    ['with padding', Buffer.from('1 clients x').toString('base64')],
    ['with a line break after it', `${Buffer.from('1 clients xy').toString('base64url')}\n`],
    ['with bytes that are no UTF-8', Buffer.from([0x31, 0x20, 0xff, 0x20, 0x78]).toString('base64url')],
  ])('is rejected %s', (_what, cursor) => {
    expect(keyOfCursor('clients', cursor)).toBeUndefined();
  });
});
