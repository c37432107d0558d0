import { HttpCode, Post, Req, UseGuards } from '@nestjs/common';
import type { Request } from 'express';
import { BearerGuard } from '../bearer/bearer.guard.js';
import type { Principal } from '../bearer/principal.js';
import { readBody } from '../oauth/body-reader.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { readParameters } from '../oauth/parameters.js';
import { CUSTOMERS_OWN } from '../oauth/scopes.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ChecksOrigin } from '../platform/http/route-parameters.js';
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
  @ChecksOrigin()
  @ApiRoute({
    summary: 'Create a transfer token, which moves a customer to another device',
    description:
      'The first device calls this route and hands the transfer token to the second device, for example as a QR code. The second device redeems it by the grant `identity_token`. The caller is the customer, or an agent with the scope `customers:own`.',
    body: TransferBody,
    bodyExamples: {
      'the customer itself': [],
      'the customer itself, with a code challenge': ['code_challenge', 'code_challenge_method'],
      'an agent': { bearer_type: 'agent', client_id: EXAMPLE.clientId, customer_id: EXAMPLE.entityId },
    },
    response: TransferResponse,
    errors: () => [
      OAuthError.invalidRequest('client_id: unknown'),
      OAuthError.invalidRequest("Origin: not one of the client's"),
      OAuthError.invalidRequest('client_id: not usable in this organization'),
      OAuthError.invalidRequest('customer_id: required'),
      OAuthError.invalidRequest('customer_id: unknown'),
      OAuthError.invalidRequest('customer_id: must be the customer of the bearer token'),
      OAuthError.invalidRequest('code_challenge: required with code_challenge_method'),
      OAuthError.invalidGrant('example'),
      OAuthError.insufficientScope(CUSTOMERS_OWN),
      OAuthError.rateLimited(1, 'example'),
    ],
  })
  @HttpCode(200)
  async create(@Req() request: Request): Promise<TransferResponse> {
    const principal = requestContext.required().principal as Principal;
    const body = readParameters(TransferBody, parseJsonObject(await readBody(request)));
    assertMayTransfer(principal, body.bearer_type);
    return this.transfers.create(principal, body, request.headers.origin);
  }
}
