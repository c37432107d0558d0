import { Injectable, Module } from '@nestjs/common';
import { MaxLength } from 'class-validator';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiString } from '../../platform/validation/validation.js';
import { CustomerRefreshTokens, REFRESH_TOKEN_GRANT } from '../../redemption/customer-refresh-tokens.js';
import { RedemptionModule } from '../../redemption/redemption.module.js';
import { Registry } from '../../registry/registry.js';
import { type Grant, GrantBody, type GrantRequest, type GrantResult, GrantType } from '../../token/grant.js';

/** The parameters of protocol §4.8. */
class RefreshTokenBody extends GrantBody {
  @ApiString('The refresh token of the last response.', EXAMPLE.refreshToken)
  @MaxLength(1024)
  refresh_token!: string;
}

/** Exchanges a refresh token of a customer for an access token and the next refresh token (protocol §4.8). */
@Injectable()
@GrantType(REFRESH_TOKEN_GRANT, {
  body: RefreshTokenBody,
  readsCustomer: true,
  optIn: true,
  responds: ['client_id'],
  refreshTokens: true,
  invalidGrantHint: 'refresh_token: unknown, expired, used before, ended or of another client',
  api: {
    description:
      'A client exchanges the refresh token of a customer for a new access token and the next refresh token. Store the new refresh token before you use it.',
    errors: ['400 invalid_grant'],
  },
})
class RefreshTokenGrant implements Grant<RefreshTokenBody> {
  constructor(
    private readonly refreshTokens: CustomerRefreshTokens,
    private readonly registry: Registry,
  ) {}

  async grant({ body, client }: GrantRequest<RefreshTokenBody>): Promise<GrantResult> {
    // a client that the organization no longer admits leaves the refresh token usable
    const assertAdmitted = ({ organization_id }: { organization_id: string }) =>
      this.registry.requireOrganization(client, organization_id);
    const { row, refreshToken } = await this.refreshTokens.refresh(body.refresh_token, client.clientId, assertAdmitted);
    return { ...this.refreshTokens.customerOf(row), refreshToken };
  }
}

@Module({ imports: [RedemptionModule], providers: [RefreshTokenGrant] })
export class RefreshTokenGrantModule {}
