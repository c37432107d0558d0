import { Exclude } from 'class-transformer';
import { IsBoolean } from 'class-validator';
import { Page, PageQuery } from '../../../oauth/pages.js';
import { ApiInheritedRoutes, ApiProperty } from '../../../platform/http/api-route.js';
import { RESOURCE_SERVERS, ResourceServerEntry } from '../../../registry/entries/resource-server.entry.js';
import type { ResourceServer } from '../../../registry/resource-server.entity.js';
import { hasSecret } from '../entry-checks.js';
import { RegistryEditor } from '../registry-editor.js';
import { RegistryLists } from '../registry-lists.js';
import { AdminController } from './admin-controller.js';
import { EntryController } from './entry.controller.js';
import { ApiEntries, ApiFromFile, entryRoutes } from './entry-routes.js';

class ResourceServerResponse extends ResourceServerEntry {
  @Exclude()
  override secret?: never;

  @IsBoolean()
  @ApiProperty('Whether the resource server has a secret.', true)
  has_secret!: boolean;

  @ApiFromFile()
  from_file!: boolean;
}

class ResourceServerPage extends Page {
  @ApiEntries(() => ResourceServerResponse)
  resource_servers!: ResourceServerResponse[];
}

@AdminController('resource-servers')
@ApiInheritedRoutes(
  entryRoutes(RESOURCE_SERVERS, {
    query: PageQuery,
    page: ResourceServerPage,
    response: ResourceServerResponse,
  }),
)
export class ResourceServerController extends EntryController<ResourceServer> {
  constructor(lists: RegistryLists, editor: RegistryEditor) {
    super(RESOURCE_SERVERS, PageQuery, lists, editor);
  }

  protected toResponse(row: ResourceServer): object {
    return { ...RESOURCE_SERVERS.toEntry(row), has_secret: hasSecret(RESOURCE_SERVERS, row), from_file: row.fromFile };
  }
}
