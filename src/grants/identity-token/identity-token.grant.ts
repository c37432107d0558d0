import { Injectable } from '@nestjs/common';
import { type Grant, type GrantRequest, type GrantResult, GrantType } from '../../token/grant.js';
import { Transfers } from '../../transfer/transfers.js';
import { IdentityTokenBody } from './identity-token.body.js';

/**
 * Redeems an identity transfer token, once, for a token of its customer. The code verifier must match (protocol §4.5).
 */
@Injectable()
@GrantType('identity_token', { body: IdentityTokenBody, responds: ['client_id'] })
export class IdentityTokenGrant implements Grant<IdentityTokenBody> {
  constructor(private readonly transfers: Transfers) {}

  async grant({ body, client }: GrantRequest<IdentityTokenBody>): Promise<GrantResult> {
    const proof = { clientId: client.clientId, codeVerifier: body.code_verifier };
    return this.transfers.redeem(body.code, proof);
  }
}
