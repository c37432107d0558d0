import { HttpCode, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Describes } from '../../platform/http/describes.js';
import { PublicController } from '../../platform/http/surfaces.js';
import { AsksFor, GrantGuard } from '../../token/grant.guard.js';
import { tokenRequest } from '../../token/token.controller.js';
import { TokenEndpoint, TokenResponse } from '../../token/token.endpoint.js';

/** Specification 4.6: the older address of the agent token grant, which names no `grant_type`. */
@PublicController('customer')
@UseGuards(GrantGuard)
export class CustomerController {
  constructor(private readonly endpoint: TokenEndpoint) {}

  @Post()
  @AsksFor('agent_token')
  @Describes({ summary: 'The older address of the agent token grant', answer: TokenResponse })
  @HttpCode(200)
  token(@Req() request: Request, @Res({ passthrough: true }) response: Response): Promise<TokenResponse> {
    return this.endpoint.issue(tokenRequest(request, response));
  }
}
