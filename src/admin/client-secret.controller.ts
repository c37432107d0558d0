import { HttpCode, Param, Post, Req, UseGuards } from '@nestjs/common';
import { IsInt, IsString, Max, Min } from 'class-validator';
import type { Request } from 'express';
import { Audit } from '../audit/audit.js';
import { readBody } from '../oauth/body-reader.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { Optional, readParameters } from '../oauth/parameters.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { Describes } from '../platform/http/describes.js';
import { ManagementController } from '../platform/http/surfaces.js';
import { RegistryEditor } from '../registry/registry-editor.js';

const DAY = 86_400;

class NewSecretBody {
  /** Seconds for which the present secret stays good. */
  @Optional()
  @IsInt()
  @Min(0)
  @Max(30 * DAY)
  old_valid_for?: number;
}

class NewSecret {
  @IsString()
  client_id: string;

  /** Shown this once. */
  @IsString()
  client_secret: string;

  /** Seconds for which the former secret stays good. */
  @IsInt()
  old_valid_for: number;
}

/** New secrets for clients, without a moment in which neither the old nor the new one is good (contract, section 9). */
@ManagementController('admin/clients/:client_id/secret')
@UseGuards(OperatorGuard)
export class ClientSecretController {
  constructor(
    private readonly editor: RegistryEditor,
    private readonly audit: Audit,
  ) {}

  /** Answers the new secret, once. */
  @Post()
  @Describes({ summary: 'A new secret for a client', body: NewSecretBody, answer: NewSecret, refusals: [409] })
  @HttpCode(200)
  async renew(@Req() request: Request, @Param('client_id') clientId: string): Promise<NewSecret> {
    const text = await readBody(request);
    const { old_valid_for = DAY } = readParameters(NewSecretBody, text === '' ? {} : parseJsonObject(text));
    const client_secret = await this.editor.renewSecret(clientId, old_valid_for);
    const subject = { kind: 'client', id: clientId } as const;
    const details = { change: 'changed', fields: ['client_secret'] };
    this.audit.record({ event: 'registry.changed', outcome: 'success', actor: { kind: 'operator' }, subject, details });
    return { client_id: clientId, client_secret, old_valid_for };
  }
}
