import { IsArray, IsBoolean, IsOptional, IsString } from 'class-validator';
import { ResourceServer } from '../resource-server.entity.js';
import { IsIdentifier, IsSecret } from './entry-rules.js';
import { defineResource } from './registry-resource.js';
import { RANDOM_SECRET } from './secret-kinds.js';

class ResourceServerEntry {
  @IsIdentifier()
  id: string;

  @IsOptional()
  @IsSecret()
  secret?: string;

  @IsArray()
  @IsString({ each: true })
  audiences: string[];
}

export const resourceServerResource = defineResource<ResourceServerEntry, ResourceServer>({
  noun: 'resource server',
  auditKind: 'resource_server',
  list: 'resource_servers',
  path: 'resource-servers',
  entry: ResourceServerEntry,
  entity: ResourceServer,
  key: { field: 'id', column: 'id' },
  secret: {
    field: 'secret',
    column: 'secretHash',
    kind: RANDOM_SECRET,
    columns: (secretHash) => ({ secretHash }),
    isRequired: true,
  },
  // always true, because the secret is required; the field is that of a client
  responseFields: { rules: { has_secret: IsBoolean() }, of: () => ({ has_secret: true }) },
  toRow: ({ id, audiences }, secret) => ({ id, ...secret, audiences }),
  toEntry: ({ id, audiences }) => ({ id, audiences }),
});
