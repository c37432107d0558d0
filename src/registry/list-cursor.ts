import { IDENTIFIER } from './resources/entry-rules.js';

/** The first word of a cursor. A later release that reads cursors differently uses another version. */
const VERSION = '1';

/** A cursor for the part of a list after a key. Callers must not read its content, which may change. */
export function cursorAfter(list: string, key: string): string {
  return Buffer.from(`${VERSION} ${list} ${key}`).toString('base64url');
}

/** The key in a cursor; `undefined` if `cursorAfter` has not returned this text for this list. */
export function keyOfCursor(list: string, cursor: string): string | undefined {
  const key = Buffer.from(cursor, 'base64url').toString().split(' ')[2] ?? '';
  // base64url has several texts for the same bytes, so that the comparison must be with the whole text
  return IDENTIFIER.test(key) && cursorAfter(list, key) === cursor ? key : undefined;
}
