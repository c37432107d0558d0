import { IsString, Matches } from 'class-validator';
import { Optional } from '../oauth/parameters.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-property.js';

export const MAX_PAGE_ENTRIES = 200;

/** The query of a list that the operator reads in pages. */
export class PageQuery {
  @Optional()
  @Matches(/^([1-9]\d?|1\d\d|200)$/, { message: `must be 1 to ${MAX_PAGE_ENTRIES}` })
  @ApiProperty('The maximum number of entries of the page: 1 to 200. 200 if omitted.', '50')
  limit?: string;

  @Optional()
  @IsString()
  @ApiProperty('`next_cursor` of the page before.', EXAMPLE.cursor)
  cursor?: string;
}
