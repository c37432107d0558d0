import { applyDecorators } from '@nestjs/common';
import { IsArray, IsBoolean, IsString } from 'class-validator';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { ResourceServer } from '../resource-server.entity.js';
import { IsIdentifier, Secret } from './entry-rules.js';
import { defineResource, RANDOM_SECRET } from './registry-resource.js';

class ResourceServerEntry {
  @IsIdentifier()
  @ApiProperty(
    'The id with which the resource server authenticates. It has the form of a client id.',
    EXAMPLE.resourceServerId,
  )
  id!: string;

  @Secret()
  secret?: string;

  @IsArray()
  @IsString({ each: true })
  @ApiProperty('The audiences whose tokens it may introspect: `customer-api`, `agent-api`.', ['customer-api'])
  audiences!: string[];
}

export const resourceServerResource = defineResource<ResourceServerEntry, ResourceServer>({
  noun: 'resource server',
  entry: ResourceServerEntry,
  entity: ResourceServer,
  key: { field: 'id', column: 'id' },
  exampleFields: ['secret'],
  exampleChange: 'audiences',
  secret: {
    field: 'secret',
    column: 'secretHash',
    kind: RANDOM_SECRET,
    isRequired: true,
  },
  // always true, because the secret is required; the field is the same as for a client
  responseFields: {
    rules: { has_secret: applyDecorators(IsBoolean(), ApiProperty('Always `true`.', true)) },
    of: () => ({ has_secret: true }),
  },
});
