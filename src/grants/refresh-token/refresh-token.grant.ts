import { Injectable } from '@nestjs/common';
import { CustomerRefreshTokens, REFRESH_TOKEN_GRANT } from '../../refresh-token/customer-refresh-tokens.js';
import { type Grant, type GrantRequest, type GrantResult } from '../../token/grant.js';
import { GrantType } from '../../token/grant-type.decorator.js';
import { REFRESH_TOKEN_DESCRIPTION, RefreshTokenBody } from './refresh-token.body.js';

/** Exchanges a refresh token of a customer for an access token and the next refresh token (protocol §4.8). */
@Injectable()
@GrantType(REFRESH_TOKEN_GRANT, {
  body: RefreshTokenBody,
  optIn: true,
  responds: ['client_id'],
  refreshTokens: true,
  api: REFRESH_TOKEN_DESCRIPTION,
})
export class RefreshTokenGrant implements Grant<RefreshTokenBody> {
  constructor(private readonly refreshTokens: CustomerRefreshTokens) {}

  grant({ body, client }: GrantRequest<RefreshTokenBody>): Promise<GrantResult> {
    return this.refreshTokens.refresh(body.refresh_token, client);
  }
}
