import { HttpCode, Param, Post, Req, UseGuards, UseInterceptors } from '@nestjs/common';
import { IsInt, IsString, Max, Min } from 'class-validator';
import type { Request } from 'express';
import { Audit } from '../audit/audit.js';
import { readBody } from '../oauth/body-reader.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Optional, readParameters } from '../oauth/parameters.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty, apiPropertyOf } from '../platform/http/api-property.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import { ClientSecrets, NO_SERVER } from '../registry/client-secrets.js';
import { auditRegistryChange } from '../registry/registry-audit.js';
import { clientResource } from '../registry/resources/client.resource.js';
import { AdminTimeoutInterceptor } from './admin-timeout.interceptor.js';

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
  @IsString()
  @ApiProperty('The id of the client.', EXAMPLE.serverClientId)
  client_id: string;

  @IsString()
  @ApiProperty('The new secret. No other response contains it.', EXAMPLE.clientSecret)
  client_secret: string;

  @IsInt()
  @ApiProperty('How long the replaced secret stays valid, in seconds. 0 if there was none.', 3_600)
  old_valid_for: number;
}

/** New secrets for clients. At each moment at least one of the old and the new secret is valid (protocol §9.1). */
@ManagementController('admin/clients/:client_id/secret')
@UseGuards(OperatorGuard)
@UseInterceptors(AdminTimeoutInterceptor)
export class ClientSecretController {
  constructor(
    private readonly secrets: ClientSecrets,
    private readonly audit: Audit,
  ) {}

  @Post()
  @ApiRoute({
    summary: 'Replace the secret of a client',
    description:
      'Generates a new secret. The old secret stays valid for a while, so that no request fails during the change.',
    pathParameters: { client_id: apiPropertyOf(NewSecret, 'client_id') },
    body: NewSecretBody,
    bodyExamples: {
      'the old secret stays valid for a day': [],
      'the old secret stays valid for an hour': ['old_valid_for'],
    },
    response: NewSecret,
    errors: () => [
      OAuthError.invalidRequest(NO_SERVER),
      OAuthError.conflict('the entry is in the registry file and can only be changed there'),
    ],
  })
  @HttpCode(200)
  async renew(@Req() request: Request, @Param('client_id') clientId: string): Promise<NewSecret> {
    const text = await readBody(request);
    const { old_valid_for = DAY_SECONDS } = readParameters(NewSecretBody, text === '' ? {} : parseJsonObject(text));
    const { secret, isFirst } = await this.secrets.renew(clientId, old_valid_for);
    auditRegistryChange(this.audit, {
      actor: operatorActor(),
      resource: clientResource,
      key: clientId,
      change: 'changed',
      fields: ['client_secret'],
    });
    return { client_id: clientId, client_secret: secret, old_valid_for: isFirst ? 0 : old_valid_for };
  }
}
