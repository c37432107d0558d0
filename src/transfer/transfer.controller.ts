import { HttpCode, Post, Req, UseGuards } from '@nestjs/common';
import type { Request } from 'express';
import { BearerGuard } from '../bearer/bearer.guard.js';
import type { Principal } from '../bearer/principal.js';
import { readBody } from '../oauth/body-reader.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { readParameters } from '../oauth/parameters.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/surfaces.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { TransferBody } from './transfer.body.js';
import { assertMayTransfer, TransferResponse, Transfers } from './transfers.js';

/**
 * A customer creates a transfer token for itself. An agent with the scope `customers:own` creates one for a customer of
 * its organization (protocol §4.4).
 */
@PublicController('v2/customer/identity_transfer')
@UseGuards(BearerGuard)
export class TransferController {
  constructor(private readonly transfers: Transfers) {}

  @Post()
  @ApiRoute({
    summary: 'Create a transfer token, which moves a customer to another device',
    body: TransferBody,
    response: TransferResponse,
    errorStatuses: [403, 429],
  })
  @HttpCode(200)
  async create(@Req() request: Request): Promise<TransferResponse> {
    const principal = requestContext.required().principal as Principal;
    const body = readParameters(TransferBody, parseJsonObject(await readBody(request)));
    assertMayTransfer(principal, body.bearer_type);
    return this.transfers.create(principal, body, request.headers.origin);
  }
}
