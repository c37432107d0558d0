import { Exclude } from 'class-transformer';
import { IsBoolean, IsISO8601, IsOptional } from 'class-validator';
import { Page } from '../../../oauth/pages.js';
import { Clock } from '../../../platform/clock.js';
import { EXAMPLE } from '../../../platform/http/api-examples.js';
import { ApiInheritedRoutes, ApiProperty } from '../../../platform/http/api-route.js';
import type { ClientApplication } from '../../../registry/client-application.entity.js';
import { CLIENTS, ClientEntry } from '../../../registry/entries/client.entry.js';
import { secretEnds } from '../../../registry/previous-secrets.js';
import { RegistryEditor } from '../registry-editor.js';
import { OrganizationListQuery, RegistryLists } from '../registry-lists.js';
import { AdminController } from './admin-controller.js';
import { EntryController } from './entry.controller.js';
import { ApiEntries, ApiFromFile } from './entry-fields.js';
import { entryRoutes } from './entry-routes.js';

class ClientResponse extends ClientEntry {
  @Exclude()
  override client_secret?: never;

  @IsBoolean()
  @ApiProperty('Whether the client has a secret.', true)
  has_secret!: boolean;

  @IsOptional()
  @IsISO8601()
  @ApiProperty('When the last replaced secret stops working; absent if none is valid.', EXAMPLE.laterTime)
  previous_secret_expires_at?: string;

  @ApiFromFile()
  from_file!: boolean;
}

class ClientPage extends Page {
  @ApiEntries(() => ClientResponse)
  clients!: ClientResponse[];
}

@AdminController('clients')
@ApiInheritedRoutes(
  entryRoutes(CLIENTS, {
    query: OrganizationListQuery,
    page: ClientPage,
    response: ClientResponse,
    deletion: ' and ends its tokens',
  }),
)
export class ClientController extends EntryController<ClientApplication> {
  constructor(
    lists: RegistryLists,
    editor: RegistryEditor,
    private readonly clock: Clock,
  ) {
    super(CLIENTS, OrganizationListQuery, lists, editor);
  }

  protected toResponse(row: ClientApplication): object {
    return {
      ...CLIENTS.toEntry(row),
      has_secret: row.secretHash !== null,
      previous_secret_expires_at: secretEnds(row.previousSecrets, this.clock.now()).at(-1),
      from_file: row.fromFile,
    };
  }
}
