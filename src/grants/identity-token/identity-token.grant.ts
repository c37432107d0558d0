import { Injectable } from '@nestjs/common';
import { type Grant, type GrantRequest, type GrantResult, GrantType } from '../../token/grant.js';
import { Transfers } from '../../transfer/transfers.js';
import { IdentityTokenBody } from './identity-token.body.js';

/** Protocol §4.5: whoever shows a transfer token, with what fits its challenge, becomes its customer. Once. */
@Injectable()
@GrantType('identity_token', { body: IdentityTokenBody, responds: ['client_id'] })
export class IdentityTokenGrant implements Grant<IdentityTokenBody> {
  constructor(private readonly transfers: Transfers) {}

  async grant({ body, client }: GrantRequest<IdentityTokenBody>): Promise<GrantResult> {
    const proof = { clientId: client.clientId, codeVerifier: body.code_verifier };
    return this.transfers.redeem(body.code, proof);
  }
}
