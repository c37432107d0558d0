import { IsOptional } from 'class-validator';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { IsUuid } from '../../platform/validation/text-rules.js';
import { Agent } from '../agent.entity.js';
import { comparableEmail } from '../agent-email.js';
import { hashPassword, isPasswordOf } from '../agent-password.js';
import type { EntryKind } from './entry-kind.js';
import { ApiPassword, AreScopes, IsEmailAddress, IsName } from './entry-rules.js';

export class AgentEntry {
  @IsEmailAddress()
  @ApiProperty('The email with which the agent signs in.', EXAMPLE.agentEmail)
  email!: string;

  @IsName()
  @ApiProperty('The name of the agent, for people.', 'Agent One')
  name!: string;

  @ApiPassword()
  password?: string;

  @IsUuid()
  @ApiProperty('The organization of the agent. A change ends its tokens.', EXAMPLE.organizationId)
  organization_id!: string;

  @IsOptional()
  @AreScopes()
  @ApiProperty('The scopes that the agent can grant to clients. A change ends its tokens.', [EXAMPLE.scope])
  scopes: string[] = [];
}

export const AGENTS: EntryKind<AgentEntry, Agent> = {
  name: 'agent',
  entry: AgentEntry,
  entity: Agent,
  key: { field: 'id', column: 'id' },
  fileKey: { field: 'email', column: 'email' },
  secret: {
    field: 'password',
    column: 'passwordHash',
    isRequired: false,
    removed: { passwordHash: '' },
    async columnsOf(password: string, stored?: Agent): Promise<Partial<Agent>> {
      const { passwordHash } = stored ?? {};
      const isStored = passwordHash && (await isPasswordOf(passwordHash, password));
      return { passwordHash: isStored ? passwordHash : await hashPassword(password) };
    },
  },

  toColumns(entry: AgentEntry): Partial<Agent> {
    return {
      email: comparableEmail(entry.email),
      name: entry.name,
      organizationId: entry.organization_id,
      scopes: entry.scopes,
    };
  },

  toEntry({ email, name, organizationId, scopes }: Agent): object {
    return { email, name, organization_id: organizationId, scopes };
  },
};

/** The sessions of an agent end when one of these columns changes. */
export const COLUMNS_OF_SESSIONS: (keyof Agent)[] = ['passwordHash', 'organizationId', 'scopes'];
