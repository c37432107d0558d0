import { Exclude } from 'class-transformer';
import { IsBoolean } from 'class-validator';
import { Page } from '../../../oauth/pages.js';
import { EXAMPLE } from '../../../platform/http/api-examples.js';
import { ApiInheritedRoutes, ApiProperty } from '../../../platform/http/api-route.js';
import { IsUuid } from '../../../platform/validation/text-rules.js';
import type { Agent } from '../../../registry/agent.entity.js';
import { AGENTS, AgentEntry } from '../../../registry/entries/agent.entry.js';
import { hasSecret } from '../entry-checks.js';
import { RegistryEditor } from '../registry-editor.js';
import { OrganizationListQuery, RegistryLists } from '../registry-lists.js';
import { AdminController } from './admin-controller.js';
import { EntryController } from './entry.controller.js';
import { ApiEntries, ApiFromFile, entryRoutes } from './entry-routes.js';

class AgentResponse extends AgentEntry {
  @Exclude()
  override password?: never;

  @IsUuid()
  @ApiProperty('The id of the agent. The service chose it.', EXAMPLE.agentId)
  id!: string;

  @IsBoolean()
  @ApiProperty('Whether the agent has a password. Without one, each sign-in as the agent fails.', true)
  has_password!: boolean;

  @ApiFromFile()
  from_file!: boolean;
}

class AgentPage extends Page {
  @ApiEntries(() => AgentResponse)
  agents!: AgentResponse[];
}

@AdminController('agents')
@ApiInheritedRoutes(
  entryRoutes(AGENTS, {
    query: OrganizationListQuery,
    page: AgentPage,
    response: AgentResponse,
    deletion: ' and ends its tokens',
  }),
)
export class AgentController extends EntryController<Agent> {
  constructor(lists: RegistryLists, editor: RegistryEditor) {
    super(AGENTS, OrganizationListQuery, lists, editor);
  }

  protected toResponse(row: Agent): object {
    return { id: row.id, ...AGENTS.toEntry(row), has_password: hasSecret(AGENTS, row), from_file: row.fromFile };
  }
}
