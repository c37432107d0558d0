import { applyDecorators, type Type } from '@nestjs/common';
import { Exclude } from 'class-transformer';
import { IsArray, IsBoolean, MaxLength } from 'class-validator';
import { IsUuid, Optional, OptionalText } from '../oauth/parameters.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { Nested } from '../platform/validation.js';
import { filtersOf, ListQuery } from '../registry/registry-lists.js';
import type { RegistryResource } from '../registry/resources/registry-resource.js';

const MAX_NAME_CHARACTERS = 200;

/** One page of a list. */
class Page {
  @OptionalText('The value of `cursor` for the next page. Absent on the last page.', EXAMPLE.cursor)
  next_cursor?: string;
}

/** The class of a list's query, with the filters that the entries of the list allow. */
export function listQueryOf(resource: RegistryResource): Type<ListQuery> {
  const filters = filtersOf(resource);
  class ResourceListQuery extends ListQuery {}
  const describe = describerOf(ResourceListQuery);
  if (filters.includes('organization_id')) describe('organization_id', Optional(), IsUuid());
  if (filters.includes('name')) describe('name', Optional(), MaxLength(MAX_NAME_CHARACTERS));
  return ResourceListQuery;
}

/** The class that describes an entry in responses. */
export function entryResponseOf({ noun, key, secret, responseFields, entry }: RegistryResource): Type<object> {
  class EntryResponse extends (entry as Type<object>) {}
  const describe = describerOf(EntryResponse);
  if (key.isGenerated)
    describe(key.field, IsUuid(), ApiProperty(`The id of the ${noun}. The service chose it.`, EXAMPLE.agentId));
  if (secret) describe(secret.field, Exclude());
  for (const [field, rules] of Object.entries(responseFields?.rules ?? {})) describe(field, rules);
  const ownedByFile = 'Whether the registry file lists the entry. Then only the file can change it.';
  describe('owned_by_file', IsBoolean(), ApiProperty(ownedByFile, false));
  return EntryResponse;
}

/** The class that describes a page of entries. */
export function pageOf({ list }: RegistryResource, entryResponse: Type<object>): Type<object> {
  class EntryPage extends Page {}
  const entries = Nested(() => entryResponse, { each: true });
  describerOf(EntryPage)(list, IsArray(), entries, ApiProperty('The entries of the page, in the order of their keys.'));
  return EntryPage;
}

function describerOf(type: Type<object>) {
  return (field: string, ...rules: PropertyDecorator[]) => applyDecorators(...rules)(type.prototype, field);
}
