import { IsArray, IsOptional, IsString } from 'class-validator';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { sha256 } from '../../platform/secret.js';
import { IsIdentifier } from '../../platform/validation/text-rules.js';
import { AssertionKeyFields, assertionKeyFields, assertionKeysOf } from '../assertion-keys.js';
import { type ReadableEvents, ResourceServer } from '../resource-server.entity.js';
import type { EntryKind } from './entry-kind.js';
import { ApiSecret, IsReadableEvents } from './entry-rules.js';

export class ResourceServerEntry extends AssertionKeyFields {
  @IsIdentifier()
  @ApiProperty(
    'The id with which the resource server authenticates. It has the form of a client id.',
    EXAMPLE.resourceServerId,
  )
  id!: string;

  @ApiSecret()
  secret?: string;

  @IsArray()
  @IsString({ each: true })
  @ApiProperty('The audiences whose tokens it may introspect: `customer-api`, `agent-api`.', ['customer-api'])
  audiences!: string[];

  @IsOptional()
  @IsReadableEvents()
  @ApiProperty(
    'The organizations whose events of customers it reads: `all`, or a list of ids; only with the audience `customer-api`. None if omitted.',
    'all',
  )
  events?: ReadableEvents;
}

export const RESOURCE_SERVERS: EntryKind<ResourceServerEntry, ResourceServer> = {
  name: 'resource_server',
  entry: ResourceServerEntry,
  entity: ResourceServer,
  key: { field: 'id', column: 'id' },
  secret: {
    field: 'secret',
    column: 'secretHash',
    isRequired: true,
    removed: { secretHash: '' },
    columnsOf: async (secret: string): Promise<Partial<ResourceServer>> => ({ secretHash: sha256(secret) }),
  },

  toColumns(entry: ResourceServerEntry): Partial<ResourceServer> {
    const { id, audiences, events = null } = entry;
    return { id, audiences, events, assertionKeys: assertionKeysOf(entry) };
  },

  toEntry({ id, audiences, events, assertionKeys }: ResourceServer): object {
    return { id, ...assertionKeyFields(assertionKeys), audiences, events: events ?? undefined };
  },
};
