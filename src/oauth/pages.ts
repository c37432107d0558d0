import { Matches } from 'class-validator';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { IDENTIFIER } from '../platform/validation/text-rules.js';
import { ApiOptionalString, Optional } from '../platform/validation/validation.js';
import { OAuthError } from './oauth-error.js';

export const MAX_PAGE_ENTRIES = 200;

/** The query of a list that is read page by page. */
export class PageQuery {
  @Optional()
  @Matches(/^([1-9]\d?|1\d\d|200)$/, { message: `must be 1 to ${MAX_PAGE_ENTRIES}` })
  @ApiProperty(
    `The maximum number of entries of the page: 1 to ${MAX_PAGE_ENTRIES}. ${MAX_PAGE_ENTRIES} if omitted.`,
    '50',
  )
  limit?: string;

  @ApiOptionalString('`next_cursor` of the page before.', EXAMPLE.cursor)
  cursor?: string;
}

export class Page {
  @ApiOptionalString('The value of `cursor` for the next page. Absent on the last page.', EXAMPLE.cursor)
  next_cursor?: string;
}

/** The first word of a cursor. A later release that reads cursors differently uses another version. */
const VERSION = '1';

/** A cursor for the part of a list after a position, such as a key. Callers must not read it, because it may change. */
export function encodeCursor(...words: (string | number)[]): string {
  return Buffer.from([VERSION, ...words].join(' ')).toString('base64url');
}

/** The words of a cursor; `undefined` if `encodeCursor` cannot have returned this text. */
export function decodeCursor(cursor: string): string[] | undefined {
  const [, ...words] = Buffer.from(cursor, 'base64url').toString().split(' ');
  // base64url has several texts for the same bytes, so that the comparison must be with the whole text
  return encodeCursor(...words) === cursor ? words : undefined;
}

/**
 * The limit of a page, and the key after which the page begins. The first page begins after an empty text, which is
 * before every key. @throws OAuthError `invalid_request` for the cursor of another list
 */
export function rangeOf(list: string, { cursor, limit }: PageQuery): { after: string; limit: number } {
  return { after: cursor === undefined ? '' : keyOf(list, cursor), limit: Number(limit ?? MAX_PAGE_ENTRIES) };
}

function keyOf(list: string, cursor: string): string {
  const [cursorList, key = '', ...furtherWords] = decodeCursor(cursor) ?? [];
  if (cursorList !== list || furtherWords.length > 0 || !IDENTIFIER.test(key))
    throw OAuthError.invalidRequest('cursor: not a next_cursor of this list');
  return key;
}
