import type { Type } from '@nestjs/common';
import { Exclude } from 'class-transformer';
import { IsBoolean, IsString } from 'class-validator';
import { Optional } from '../oauth/parameters.js';
import { Each, IsUuid } from '../registry/resources/entry-rules.js';
import type { RegistryResource } from '../registry/resources/registry-resource.js';

/** One page of a list. */
class Page {
  /** The value of `cursor` for the next page. Absent on the last page. */
  @Optional()
  @IsString()
  next_cursor?: string;

  /** The value of `after` for the next page, for callers of release 1. */
  @Optional()
  @IsString()
  next?: string;
}

/** The classes that describe the responses of one resource in the OpenAPI document. */
export interface EntryResponses {
  entry: Type<object>;
  page: Type<object>;
}

export function entryResponsesOf(resource: RegistryResource): EntryResponses {
  const { list, key, secret, responseFields } = resource;
  const EntryClass: Type<object> = resource.entry;

  class EntryResponse extends EntryClass {}
  if (key.isGenerated) IsUuid()(EntryResponse.prototype, key.field);
  if (secret) Exclude()(EntryResponse.prototype, secret.field);
  for (const [field, rules] of Object.entries(responseFields?.rules ?? {})) rules(EntryResponse.prototype, field);
  IsBoolean()(EntryResponse.prototype, 'owned_by_file');

  class EntryPage extends Page {}
  Each(() => EntryResponse)(EntryPage.prototype, list);

  return { entry: EntryResponse, page: EntryPage };
}
