import { IsEmail, IsOptional } from 'class-validator';
import { Agent } from '../agent.entity.js';
import { AreScopes, FitsLowered, IsName, IsPassword, IsUuid } from './entry-rules.js';
import { organizationResource } from './organization.resource.js';
import { defineResource } from './registry-resource.js';
import { PASSWORD } from './secret-kinds.js';

class AgentEntry {
  @IsEmail({ require_tld: false })
  @FitsLowered(254)
  email: string;

  @IsName()
  name: string;

  @IsOptional()
  @IsPassword()
  password?: string;

  @IsUuid()
  organization_id: string;

  @IsOptional()
  @AreScopes()
  scopes: string[] = [];
}

export const agentResource = defineResource<AgentEntry, Agent>({
  noun: 'agent',
  auditKind: 'agent',
  list: 'agents',
  path: 'agents',
  entry: AgentEntry,
  entity: Agent,
  key: { field: 'id', column: 'id', isGenerated: true },
  fileKey: { field: 'email', column: 'email', normalize: (email) => email.toLowerCase() },
  references: [{ field: 'organization_id', column: 'organizationId', resource: organizationResource }],
  secret: {
    field: 'password',
    column: 'passwordHash',
    kind: PASSWORD,
    columns: (passwordHash) => ({ passwordHash }),
    isRequired: true,
  },
  tokensEndWith: { password: 'passwordHash', organization_id: 'organizationId', scopes: 'scopes' },
  columnsOnTokenEnd: { generation: () => 'COALESCE(generation, 0) + 1' },
  toRow: ({ email, name, organization_id: organizationId, scopes }, secret) => ({
    email: email.toLowerCase(),
    name,
    ...secret,
    organizationId,
    scopes,
  }),
  toEntry: ({ email, name, organizationId, scopes }) => ({ email, name, organization_id: organizationId, scopes }),
});
