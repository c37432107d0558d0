import { HttpCode, Param, Post, Req, UseGuards, UseInterceptors } from '@nestjs/common';
import { IsInt, IsString, Max, Min } from 'class-validator';
import type { Request } from 'express';
import { Audit } from '../audit/audit.js';
import { readBody } from '../oauth/body-reader.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { Optional, readParameters } from '../oauth/parameters.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import { ClientSecrets } from '../registry/client-secrets.js';
import { auditRegistryChange } from '../registry/registry-audit.js';
import { clientResource } from '../registry/resources/client.resource.js';
import { AdminTimeoutInterceptor } from './admin-timeout.interceptor.js';

const DAY_SECONDS = 86_400;

class NewSecretBody {
  /** The present secret stays valid for this many seconds. */
  @Optional()
  @IsInt()
  @Min(0)
  @Max(30 * DAY_SECONDS)
  old_valid_for?: number;
}

class NewSecret {
  @IsString()
  client_id: string;

  /** The new secret. No other response contains it. */
  @IsString()
  client_secret: string;

  /** The replaced secret stays valid for this many seconds; 0 if there was none. */
  @IsInt()
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
    body: NewSecretBody,
    response: NewSecret,
    errorStatuses: [409],
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
