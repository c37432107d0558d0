import { Injectable } from '@nestjs/common';
import { type Grant, type GrantRequest, type GrantResult, GrantType } from '../../token/grant.js';
import { Transfers } from '../../transfer/transfers.js';
import { IdentityTokenBody } from './identity-token.body.js';

/**
 * Exchanges a transfer token for an access token of its customer (protocol §4.5). A transfer token can be redeemed
 * once. A failed attempt, such as one with a wrong `code_verifier`, leaves it usable.
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
