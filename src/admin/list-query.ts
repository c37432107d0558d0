import type { Type } from '@nestjs/common';
import { IsString, Matches, MaxLength } from 'class-validator';
import { OAuthError } from '../oauth/oauth-error.js';
import { Optional } from '../oauth/parameters.js';
import { readStrictQuery } from '../oauth/strict-query.js';
import { filterColumnsOf, type ListRange } from '../registry/registry-lists.js';
import { IsUuid } from '../registry/resources/entry-rules.js';
import type { RegistryResource } from '../registry/resources/registry-resource.js';
import { keyOfCursor } from './list-cursor.js';

export const MAX_PAGE_ENTRIES = 200;
const MAX_NAME_CHARACTERS = 200;
const MAX_KEY_CHARACTERS = 128;

/** The query of a list. The lists have different filters. */
export class ListQuery {
  /** The maximum number of entries of the page. */
  @Optional()
  @Matches(/^([1-9]\d?|1\d\d|200)$/, { message: `must be 1 to ${MAX_PAGE_ENTRIES}` })
  limit?: string;

  /** `next_cursor` of the page before. */
  @Optional()
  @IsString()
  cursor?: string;

  /** The page begins after this key. Callers of release 1 use it instead of a cursor. */
  @Optional()
  @MaxLength(MAX_KEY_CHARACTERS)
  after?: string;

  organization_id?: string;
  name?: string;
}

/** The class of a list's query, with the filters that the entries of the list allow. */
export function listQueryOf(resource: RegistryResource): Type<ListQuery> {
  const columns = filterColumnsOf(resource);
  class ResourceListQuery extends ListQuery {}
  const declare = (field: string, ...rules: PropertyDecorator[]) => {
    for (const rule of [Optional(), ...rules]) rule(ResourceListQuery.prototype, field);
  };
  if (columns.organizationId !== undefined) declare('organization_id', IsUuid());
  if (columns.name !== undefined) declare('name', MaxLength(MAX_NAME_CHARACTERS));
  return ResourceListQuery;
}

/** @throws OAuthError `invalid_request` */
export function readListQuery(queryClass: Type<ListQuery>, list: string, url: string): ListRange {
  const query = readStrictQuery(queryClass, url);
  const { limit = String(MAX_PAGE_ENTRIES), cursor, after, organization_id: organizationId, name } = query;
  if (cursor !== undefined && after !== undefined) throw OAuthError.invalidRequest('cursor: not together with after');
  const key = cursor === undefined ? (after ?? '') : keyOfCursor(list, cursor);
  if (key === undefined) throw OAuthError.invalidRequest('cursor: not a next_cursor of this list');
  return { after: key, limit: Number(limit), organizationId, name };
}
