import { HttpCode, Param, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { AgentPrincipal } from '../bearer/principal.js';
import { Describes } from '../platform/http/describes.js';
import { PublicController } from '../platform/http/surfaces.js';
import { GrantGuard } from './grant.guard.js';
import type { Browser } from './grant.js';
import { TokenEndpoint, type TokenRequest, TokenResponse } from './token.endpoint.js';

/** The token addresses (specification 4.1 to 4.3 and 4.5). */
@PublicController('v2/customer')
@UseGuards(GrantGuard)
export class TokenController {
  constructor(private readonly endpoint: TokenEndpoint) {}

  @Post('token')
  @Describes({ summary: 'A customer token, by one of the grants', answer: TokenResponse })
  @HttpCode(200)
  token(@Req() request: Request, @Res({ passthrough: true }) response: Response): Promise<TokenResponse> {
    return this.endpoint.issue(tokenRequest(request, response));
  }

  @Post(':organization_id/:group_id/token')
  @Describes({ summary: 'A customer token within one group of an organization', answer: TokenResponse })
  @HttpCode(200)
  groupToken(
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
    @Param('organization_id') organizationId: string,
    @Param('group_id') groupId: string,
  ): Promise<TokenResponse> {
    return this.endpoint.issue({ ...tokenRequest(request, response), address: { organizationId, groupId } });
  }
}

/** A request that the grant guard has let in, as the endpoint takes it. */
export function tokenRequest(request: Request, response: Response): TokenRequest {
  const { asked, principal } = request as Required<Pick<Request, 'asked'>> & Request;
  return { ...asked, ...(principal && { agent: principal as AgentPrincipal }), browser: browserOf(request, response) };
}

function browserOf({ headers }: Request, response: Response): Browser {
  return {
    origin: headers.origin,
    cookies: headers.cookie,
    setCookie: (line) => response.appendHeader('Set-Cookie', line),
  };
}
