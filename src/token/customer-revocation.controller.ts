import { HttpCode, Post, Req } from '@nestjs/common';
import { MaxLength } from 'class-validator';
import type { Request } from 'express';
import { RevocationLimit } from '../feed/revocation-limit.js';
import { ClientAuthentication, CredentialParameters } from '../http/callers/client-authentication.js';
import { ClientRequest } from '../http/routes/parameter.decorators.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/listener.decorators.js';
import { ApiOptionalString, ApiString } from '../platform/validation/validation.js';
import { TokenRevocation } from './token-revocation.js';

/** The parameters of RFC 7009 §2.1. */
class CustomerRevocationBody extends CredentialParameters {
  @ApiString('A customer access token, or any refresh token of the session to end.', EXAMPLE.refreshToken)
  @MaxLength(8192)
  token!: string;

  @ApiString('The client that the token was issued for.', EXAMPLE.clientId)
  override client_id!: string;

  @ApiOptionalString('Ignored, because the form of a token shows its kind.', 'refresh_token')
  token_type_hint?: string;
}

/** Lets a client end a token of a customer (RFC 7009, protocol §4.15). */
@PublicController('v2/customer/revoke')
export class CustomerRevocationController {
  constructor(
    private readonly revocation: TokenRevocation,
    private readonly clients: ClientAuthentication,
    private readonly revocationLimit: RevocationLimit,
  ) {}

  @Post()
  @ApiRoute({
    summary: 'Revoke a token of a customer (RFC 7009)',
    description:
      'Ends an access token of a customer with what was made with it, or a refresh token with its session. The response is the same for a token that is unknown or of another client. The client need not authenticate: the token is the proof.',
    bodyFormats: ['form', 'json'],
    errors: ['401 invalid_client'],
  })
  @HttpCode(200)
  async revoke(
    @Req() request: Request,
    @ClientRequest(CustomerRevocationBody, { form: true }) { body, client }: ClientRequest<CustomerRevocationBody>,
  ): Promise<object> {
    const isAuthenticated = await this.clients.authenticates(body, request);
    const { clientId } = client;
    const count = () => (isAuthenticated ? this.revocationLimit.assertRoom() : this.revocationLimit.take());
    await this.revocation.revoke(body.token, { clientId, audience: 'customer-api', count });
    return {};
  }
}
