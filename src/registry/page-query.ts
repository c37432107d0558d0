import { Matches } from 'class-validator';
import { OAuthError } from '../oauth/oauth-error.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { ApiOptionalString, Optional } from '../platform/validation/decorators.js';
import { IDENTIFIER } from './entries/entry-rules.js';

export const MAX_PAGE_ENTRIES = 200;

const LIMIT_RULE = `must be 1 to ${MAX_PAGE_ENTRIES}`;

export class PageQuery {
  @Optional()
  @Matches(/^([1-9]\d?|1\d\d|200)$/, { message: LIMIT_RULE })
  @ApiProperty(
    `The maximum number of entries of the page: 1 to ${MAX_PAGE_ENTRIES}. ${MAX_PAGE_ENTRIES} if omitted.`,
    '50',
  )
  limit?: string;

  @ApiOptionalString('`next_cursor` of the page before.', EXAMPLE.cursor)
  cursor?: string;
}

const unknownCursor = () => OAuthError.invalidRequest('cursor: not a next_cursor of this list');

export const PAGE_ERRORS = () => [OAuthError.invalidRequest(`limit: ${LIMIT_RULE}`), unknownCursor()];

/** The first word of a cursor. A later release that reads cursors differently uses another version. */
const VERSION = '1';

/** A cursor for the part of a list after a position, such as a key. Callers must not read it, because it may change. */
export function cursorAfter(...words: (string | number)[]): string {
  return Buffer.from([VERSION, ...words].join(' ')).toString('base64url');
}

/** The words of a cursor; `undefined` if `cursorAfter` cannot have returned this text. */
export function wordsOf(cursor: string): string[] | undefined {
  const [, ...words] = Buffer.from(cursor, 'base64url').toString().split(' ');
  // base64url has several texts for the same bytes, so that the comparison must be with the whole text
  return cursorAfter(...words) === cursor ? words : undefined;
}

/** An empty text, the first page, is before every key. @throws OAuthError `invalid_request` for a foreign cursor */
export function startOfPage(list: string, { cursor }: PageQuery): string {
  if (cursor === undefined) return '';
  const [cursorList, key = '', ...more] = wordsOf(cursor) ?? [];
  if (cursorList !== list || more.length > 0 || !IDENTIFIER.test(key)) throw unknownCursor();
  return key;
}
