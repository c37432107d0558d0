import { HttpCode, Param, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/surfaces.js';
import { TokenEndpoint } from './token.endpoint.js';
import { TokenResponse } from './token-response.js';
import { TokenRoute } from './token-route.js';

/** The token endpoint of customers (protocol §4.1 to §4.3, §4.5 and §4.7). */
@PublicController('v2/customer')
export class TokenController {
  constructor(private readonly endpoint: TokenEndpoint) {}

  @Post('token')
  @TokenRoute('token')
  @ApiRoute({ summary: 'Get a customer token by a grant', response: TokenResponse, errorStatuses: [409] })
  @HttpCode(200)
  token(@Req() request: Request): Promise<TokenResponse> {
    return this.endpoint.respond(request);
  }

  @Post(':organization_id/:group_id/token')
  @TokenRoute('group')
  @ApiRoute({ summary: 'Get a customer token for a group of an organization', response: TokenResponse })
  @HttpCode(200)
  groupToken(
    @Req() request: Request,
    @Param('organization_id') organizationId: string,
    @Param('group_id') groupId: string,
  ): Promise<TokenResponse> {
    return this.endpoint.respond(request, { group: { organizationId, groupId } });
  }
}
