import { HttpCode, Param, Post } from '@nestjs/common';
import { IsInt, Max, Min } from 'class-validator';
import { operatorActor } from '../../../http/callers/operator-credentials.js';
import { ValidatedBody } from '../../../http/routes/parameter.decorators.js';
import { EXAMPLE } from '../../../platform/http/api-examples.js';
import { ApiProperty, ApiRoute, apiPropertyOf } from '../../../platform/http/api-route.js';
import { ApiInteger, ApiString, Optional } from '../../../platform/validation/validation.js';
import { RegistryEditor } from '../registry-editor.js';
import { AdminController } from './admin-controller.js';

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

/** New secrets for clients. At each moment at least one of the old and the new secret is valid (protocol §9.1). */
@AdminController('clients/:client_id/secret')
export class ClientSecretController {
  constructor(private readonly editor: RegistryEditor) {}

  @Post()
  @ApiRoute({
    summary: 'Replace the secret of a client',
    description:
      'Generates a new secret. The old secret stays valid for a while, so that no request fails during the change.',
    pathParameters: { client_id: apiPropertyOf(NewSecret, 'client_id') },
    response: NewSecret,
    errors: ['409 conflict'],
  })
  @HttpCode(200)
  async renew(
    @Param('client_id') clientId: string,
    @ValidatedBody(NewSecretBody, { mayBeEmpty: true }) { old_valid_for = DAY_SECONDS }: NewSecretBody,
  ): Promise<NewSecret> {
    const { secret, isFirst } = await this.editor.renewSecret(clientId, old_valid_for, operatorActor());
    return { client_id: clientId, client_secret: secret, old_valid_for: isFirst ? 0 : old_valid_for };
  }
}
