import { HttpCode, Param, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiRoute, apiPropertyOf } from '../platform/http/api-route.js';
import { ChecksOrigin, UsesCookies } from '../platform/http/route-parameters.js';
import { PublicController } from '../platform/http/surfaces.js';
import { GrantBody } from './grant.js';
import { TokenEndpoint } from './token.endpoint.js';
import { TOKEN_ERRORS } from './token-errors.js';
import { TokenResponse, TokenRoute } from './token-response.js';

/** The token endpoint of customers (protocol §4.1 to §4.3, §4.5, §4.7 and §4.8). */
@PublicController('v2/customer')
export class TokenController {
  constructor(private readonly endpoint: TokenEndpoint) {}

  @Post('token')
  @TokenRoute({})
  @UsesCookies()
  @ChecksOrigin()
  @ApiRoute({
    summary: 'Get a customer token by a grant',
    description:
      'Issues an access token for a customer. `grant_type` says how the caller proves which customer. Each schema of the body describes the parameters of one grant.',
    response: TokenResponse,
  })
  @HttpCode(200)
  token(@Req() request: Request): Promise<TokenResponse> {
    return this.endpoint.respond(request);
  }

  @Post(':organization_id/:group_id/token')
  @TokenRoute({ group: true })
  @UsesCookies()
  @ChecksOrigin()
  @ApiRoute({
    summary: 'Get a customer token for a group of an organization',
    description:
      'The grant `cookie` for one group of an organization. The same browser has a customer of its own in each group.',
    pathParameters: {
      organization_id: apiPropertyOf(GrantBody, 'organization_id'),
      group_id: {
        description: 'The group: 1 to 64 letters, digits, _ or -, case-sensitive.',
        example: EXAMPLE.groupId,
      },
    },
    response: TokenResponse,
    errors: () => [
      TOKEN_ERRORS.groupId(),
      TOKEN_ERRORS.organizationOfPath(),
      TOKEN_ERRORS.noGroups(),
      TOKEN_ERRORS.sharedGroups(),
    ],
  })
  @HttpCode(200)
  groupToken(
    @Req() request: Request,
    @Param('organization_id') organizationId: string,
    @Param('group_id') groupId: string,
  ): Promise<TokenResponse> {
    return this.endpoint.respond(request, { group: { organizationId, groupId } });
  }
}
