import { applyDecorators, type Type } from '@nestjs/common';
import { Exclude } from 'class-transformer';
import { IsBoolean, IsString } from 'class-validator';
import { Optional } from '../oauth/parameters.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-property.js';
import { Each, IsUuid } from '../registry/resources/entry-rules.js';
import type { RegistryResource } from '../registry/resources/registry-resource.js';

/** One page of a list. */
class Page {
  @Optional()
  @IsString()
  @ApiProperty('The value of `cursor` for the next page. Absent on the last page.', EXAMPLE.cursor)
  next_cursor?: string;
}

/** The classes that describe the responses of one resource in the OpenAPI document. */
export interface EntryResponses {
  entry: Type<object>;
  page: Type<object>;
}

export function entryResponsesOf(resource: RegistryResource): EntryResponses {
  const { noun, list, key, secret, responseFields } = resource;
  const EntryClass: Type<object> = resource.entry;

  class EntryResponse extends EntryClass {}
  const describe = (field: string, ...rules: PropertyDecorator[]) =>
    applyDecorators(...rules)(EntryResponse.prototype, field);
  if (key.isGenerated)
    describe(key.field, IsUuid(), ApiProperty(`The id of the ${noun}. The service chose it.`, EXAMPLE.agentId));
  if (secret) Exclude()(EntryResponse.prototype, secret.field);
  for (const [field, rules] of Object.entries(responseFields?.rules ?? {})) rules(EntryResponse.prototype, field);
  describe(
    'owned_by_file',
    IsBoolean(),
    ApiProperty('Whether the registry file lists the entry. Then only the file can change it.', false),
  );

  class EntryPage extends Page {}
  applyDecorators(
    Each(() => EntryResponse),
    ApiProperty('The entries of the page, in the order of their keys.'),
  )(EntryPage.prototype, list);

  return { entry: EntryResponse, page: EntryPage };
}
