import { ApiProperty, ApiRoute, PublicController, ValidatedBody } from '@customer-authorization/service/grant';
import { HttpCode, Post, Req, UseGuards } from '@nestjs/common';
import { IsObject, IsString, MaxLength, MinLength } from 'class-validator';
import type { Request } from 'express';
import { DemoBackendGuard } from './demo-backend.guard.js';
import { type BackendExchange, DemoBackend } from './demo-backend.js';

class DemoUserBody {
  @IsString()
  @MinLength(1)
  @MaxLength(1_000)
  @ApiProperty("The organization's own id of the user.", 'user-4711')
  external_id!: string;
}

class DemoAssertionResponse {
  @IsString()
  @ApiProperty('The signed assertion, for the JWT bearer grant.', 'header.payload.signature')
  assertion!: string;
}

class DemoExchangeResponse {
  @IsObject()
  @ApiProperty('The request that the demo backend sent. A placeholder replaces the agent token.', {
    method: 'POST',
    url: 'http://127.0.0.1:3000/v2/customer/token',
    headers: {},
    body: {},
  })
  request!: BackendExchange['request'];

  @IsObject()
  @ApiProperty('The response that it got.', { status: 200, headers: {}, body: {} })
  response!: BackendExchange['response'];

  @IsObject()
  @ApiProperty('The claims of the agent token.', { sub: '0192f0a1-1c2d-7e3f-8a4b-5c6d7e8f9a0b', aud: 'agent-api' })
  agentTokenClaims!: object;
}

/** The demo backend of the try-it page (protocol §11). */
@PublicController('try')
@UseGuards(DemoBackendGuard)
export class DemoBackendController {
  constructor(private readonly backend: DemoBackend) {}

  @Post('backend/customer')
  @HttpCode(200)
  @ApiRoute({
    summary: 'Let the demo backend get a customer token for a user',
    description:
      'The demo backend gets a token by the grant `agent_token`. It serves only the try-it page on the same machine.',
    response: DemoExchangeResponse,
    errors: ['404 not_found'],
  })
  customer(
    @Req() request: Request,
    @ValidatedBody(DemoUserBody) { external_id }: DemoUserBody,
  ): Promise<BackendExchange> {
    return this.backend.customerOf(external_id, ownUrl(request));
  }

  @Post('assertion')
  @HttpCode(200)
  @ApiRoute({
    summary: 'Let the demo backend sign an assertion about its user',
    description:
      'The page signs its browser in with the assertion. The route serves only the try-it page on the same machine.',
    response: DemoAssertionResponse,
    errors: ['404 not_found'],
  })
  assertion(@ValidatedBody(DemoUserBody) { external_id }: DemoUserBody): DemoAssertionResponse {
    return { assertion: this.backend.assertionAbout(external_id) };
  }
}

/** The URL at which this process reaches itself: the address and port to which the request was sent. */
function ownUrl({ socket: { localAddress = '127.0.0.1', localPort } }: Request): string {
  return `http://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
