import { IsOptional } from 'class-validator';
import { IsUuid } from '../../oauth/parameters.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { Agent } from '../agent.entity.js';
import { comparableEmail } from '../agent-email.js';
import { AreScopes, IsEmailAddress, IsName, Password } from './entry-rules.js';
import { organizationResource } from './organization.resource.js';
import { defineResource, PASSWORD } from './registry-resource.js';

class AgentEntry {
  @IsEmailAddress()
  @ApiProperty('The email with which the agent signs in.', EXAMPLE.agentEmail)
  email!: string;

  @IsName()
  @ApiProperty('The name of the agent, for people.', 'Agent One')
  name!: string;

  @Password()
  password?: string;

  @IsUuid()
  @ApiProperty('The organization of the agent. A change ends its tokens.', EXAMPLE.organizationId)
  organization_id!: string;

  @IsOptional()
  @AreScopes()
  @ApiProperty('The scopes that the agent can grant to clients. A change ends its tokens.', [EXAMPLE.scope])
  scopes: string[] = [];
}

export const agentResource = defineResource<AgentEntry, Agent>({
  noun: 'agent',
  entry: AgentEntry,
  entity: Agent,
  key: { field: 'id', column: 'id', isGenerated: true },
  fileKey: { field: 'email', column: 'email', normalize: comparableEmail },
  references: [{ field: 'organization_id', column: 'organizationId', resource: organizationResource }],
  exampleFields: ['password', 'scopes'],
  exampleChange: 'name',
  secret: {
    field: 'password',
    column: 'passwordHash',
    kind: PASSWORD,
    isRequired: true,
  },
  tokensEndWith: { password: 'passwordHash', organization_id: 'organizationId', scopes: 'scopes' },
  columnsOnTokenEnd: { generation: () => 'generation + 1' },
});
