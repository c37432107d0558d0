import { HttpCode, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { BearerGuard } from '../http/callers/bearer.guard.js';
import type { Principal } from '../http/callers/principal.js';
import { Caller, ValidatedBody } from '../http/routes/parameter.decorators.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/listener.decorators.js';
import { ChecksOrigin } from '../platform/http/route-parameters.js';
import { TransferBody } from './transfer.body.js';
import { assertMayTransfer, TransferResponse, Transfers } from './transfers.js';

/**
 * A customer creates a transfer token for itself. An agent with the scope `customers:own` creates one for a customer of
 * its organization (protocol §4.4).
 */
@PublicController('v2/customer/identity_transfer')
export class TransferController {
  constructor(private readonly transfers: Transfers) {}

  @Post()
  @ChecksOrigin()
  @ApiRoute({
    summary: 'Create a transfer token, which moves a customer to another device',
    description:
      'The first device calls this route and hands the transfer token to the second device, for example as a QR code. The second device redeems it by the grant `identity_token`. The caller is the customer, or an agent with the scope `customers:own`.',
    response: TransferResponse,
    errors: ['400 invalid_grant', '403 insufficient_scope', '429 temporarily_unavailable'],
  })
  @HttpCode(200)
  async create(
    @Req() { headers: { origin } }: Request,
    @Caller(BearerGuard) principal: Principal,
    @ValidatedBody(TransferBody) body: TransferBody,
  ): Promise<TransferResponse> {
    assertMayTransfer(principal, body.bearer_type);
    return this.transfers.create(principal, body, origin);
  }
}
