import { HttpCode, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { ApiRoute } from '../../platform/http/api-route.js';
import { ChecksOrigin } from '../../platform/http/route-parameters.js';
import { PublicController } from '../../platform/http/surfaces.js';
import { TokenEndpoint } from '../../token/token.endpoint.js';
import { TokenResponse, TokenRoute } from '../../token/token-response.js';

const GRANT_TYPE = 'agent_token';

/** The older route of the agent token grant, whose requests send no `grant_type` (protocol §4.6). */
@PublicController('customer')
export class CustomerController {
  constructor(private readonly endpoint: TokenEndpoint) {}

  @Post()
  @TokenRoute({ grantType: GRANT_TYPE })
  @ChecksOrigin()
  @ApiRoute({
    summary: 'Get a customer token by the agent token grant; older route',
    description:
      'The grant `agent_token` without `grant_type`, for callers that exist. New callers use `POST /v2/customer/token`.',
    path: '/customer/',
    response: TokenResponse,
  })
  @HttpCode(200)
  token(@Req() request: Request): Promise<TokenResponse> {
    return this.endpoint.respond(request, { grantType: GRANT_TYPE });
  }
}
