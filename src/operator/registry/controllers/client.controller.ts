import { HttpCode, Param, Post } from '@nestjs/common';
import { Exclude } from 'class-transformer';
import { IsBoolean, IsInt, IsISO8601, IsOptional, Max, Min } from 'class-validator';
import { operatorActor } from '../../../http/callers/operator-credentials.js';
import { ValidatedBody } from '../../../http/routes/parameter.decorators.js';
import { Page } from '../../../oauth/pages.js';
import { Clock } from '../../../platform/clock.js';
import { EXAMPLE } from '../../../platform/http/api-examples.js';
import { ApiInheritedRoutes, ApiProperty, ApiRoute, apiPropertyOf } from '../../../platform/http/api-route.js';
import { ApiInteger, ApiString, Optional } from '../../../platform/validation/validation.js';
import type { ClientApplication } from '../../../registry/client-application.entity.js';
import { CLIENTS, ClientEntry } from '../../../registry/entries/client.entry.js';
import { secretEnds } from '../../../registry/previous-secrets.js';
import { RegistryEditor } from '../registry-editor.js';
import { OrganizationListQuery, RegistryLists } from '../registry-lists.js';
import { AdminController } from './admin-controller.js';
import { EntryController } from './entry.controller.js';
import { ApiEntries, ApiFromFile, entryRoutes } from './entry-routes.js';

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

const DAY_SECONDS = 86_400;

class NewSecretBody {
  @Optional()
  @IsInt()
  @Min(0)
  @Max(30 * DAY_SECONDS)
  @ApiProperty('How long the present secret stays valid, in seconds: 0 to 2,592,000. 86,400 if omitted.', 3_600)
  old_valid_for?: number;
}

class NewSecret {
  @ApiString('The id of the client.', EXAMPLE.serverClientId)
  client_id!: string;

  @ApiString('The new secret. No other response contains it.', EXAMPLE.clientSecret)
  client_secret!: string;

  @ApiInteger('How long the replaced secret stays valid, in seconds. 0 if there was none.', 3_600)
  old_valid_for!: number;
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

  /** At each moment at least one of the old and the new secret is valid (protocol §9.1). */
  @Post(':client_id/secret')
  @ApiRoute({
    summary: 'Replace the secret of a client',
    description:
      'Generates a new secret. The old secret stays valid for a while, so that no request fails during the change.',
    pathParameters: { client_id: apiPropertyOf(NewSecret, 'client_id') },
    response: NewSecret,
    errors: ['409 conflict'],
  })
  @HttpCode(200)
  async renewSecret(
    @Param('client_id') clientId: string,
    @ValidatedBody(NewSecretBody, { mayBeEmpty: true }) { old_valid_for = DAY_SECONDS }: NewSecretBody,
  ): Promise<NewSecret> {
    const { secret, isFirst } = await this.editor.renewSecret(clientId, old_valid_for, operatorActor());
    return { client_id: clientId, client_secret: secret, old_valid_for: isFirst ? 0 : old_valid_for };
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
