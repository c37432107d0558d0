import { Exclude } from 'class-transformer';
import { IsUuid } from '../../oauth/parameters.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiInheritedRoutes, ApiProperty } from '../../platform/http/api-route.js';
import type { Agent } from '../../registry/agent.entity.js';
import { AGENTS, AgentEntry } from '../../registry/entries/agent.entry.js';
import { PageQuery } from '../../registry/page-query.js';
import { RegistryEditor } from '../../registry/registry-editor.js';
import { RegistryLists } from '../../registry/registry-lists.js';
import { AdminController } from './admin-controller.js';
import { EntryController, EntryPage } from './entry.controller.js';
import { Entries, FromFile, Named, OfOrganization } from './entry-fields.js';
import { entryRoutes } from './entry-routes.js';

class AgentQuery extends PageQuery {
  @OfOrganization()
  organization_id?: string;

  @Named()
  name?: string;
}

class AgentResponse extends AgentEntry {
  @Exclude()
  override password?: never;

  @IsUuid()
  @ApiProperty('The id of the agent. The service chose it.', EXAMPLE.agentId)
  id!: string;

  @FromFile()
  from_file!: boolean;
}

class AgentPage extends EntryPage {
  @Entries(() => AgentResponse)
  agents!: AgentResponse[];
}

@AdminController('agents')
@ApiInheritedRoutes(
  entryRoutes(AGENTS, {
    query: AgentQuery,
    page: AgentPage,
    response: AgentResponse,
    exampleFields: ['password', 'scopes'],
    exampleChange: 'name',
    deletion: ' and ends its tokens',
  }),
)
export class AgentController extends EntryController<Agent> {
  constructor(lists: RegistryLists, editor: RegistryEditor) {
    super(AGENTS, AgentQuery, lists, editor);
  }

  protected toResponse(row: Agent): object {
    return { id: row.id, ...AGENTS.toEntry(row), from_file: row.fromFile };
  }
}
