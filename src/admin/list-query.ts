import type { Type } from '@nestjs/common';
import { MaxLength } from 'class-validator';
import { OAuthError } from '../oauth/oauth-error.js';
import { Optional } from '../oauth/parameters.js';
import { readStrictQuery } from '../oauth/strict-query.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-property.js';
import { keyOfCursor } from '../registry/list-cursor.js';
import { MAX_PAGE_ENTRIES, PageQuery } from '../registry/page-query.js';
import { filterColumnsOf, type ListRange } from '../registry/registry-lists.js';
import { IsUuid } from '../registry/resources/entry-rules.js';
import type { RegistryResource } from '../registry/resources/registry-resource.js';

const MAX_NAME_CHARACTERS = 200;

/** The query of a list. The lists have different filters. */
export class ListQuery extends PageQuery {
  @ApiProperty('Only entries of this organization.', EXAMPLE.organizationId)
  organization_id?: string;
  @ApiProperty('Only entries with exactly this name.', 'Acme')
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
  const { limit = String(MAX_PAGE_ENTRIES), cursor, organization_id: organizationId, name } = query;
  const key = cursor === undefined ? '' : keyOfCursor(list, cursor);
  if (key === undefined) throw OAuthError.invalidRequest('cursor: not a next_cursor of this list');
  return { after: key, limit: Number(limit), organizationId, name };
}
