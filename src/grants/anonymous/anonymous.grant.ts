import { Injectable, Module } from '@nestjs/common';
import { CustomerCreation } from '../../identity/customer-creation.js';
import { IdentityModule } from '../../identity/identity.module.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { IsUuid } from '../../platform/validation/text-rules.js';
import { ApiEnum } from '../../platform/validation/validation.js';
import { CustomerRefreshTokens, REFRESH_TOKEN_GRANT } from '../../redemption/customer-refresh-tokens.js';
import { RedemptionModule } from '../../redemption/redemption.module.js';
import { type Grant, GrantBody, type GrantRequest, type GrantResult, GrantType } from '../../token/grant.js';

/** The parameters of protocol §4.17. On the path of a group `organization_id` may be omitted. */
class AnonymousBody extends GrantBody {
  @ApiEnum(['token'], 'Always `token`.')
  response_type!: 'token';

  @IsUuid()
  override organization_id!: string;
}

const ERRORS = {
  noOrigin: () => OAuthError.invalidRequest('Origin: missing; a page sends one, as must clients of the type web'),
  grantNotListed: () => OAuthError.unauthorizedClient('grant_type: the client does not list the grant refresh_token'),
};

/** Creates a customer for a client that keeps no cookies, but a refresh token (protocol §4.17). */
@Injectable()
@GrantType('anonymous', {
  body: AnonymousBody,
  uses: 'unlimited',
  readsCustomer: true,
  groups: true,
  optIn: true,
  responds: ['client_id', 'organization_id'],
  refreshTokens: true,
  api: {
    description:
      'Creates a customer for a web view, a native app, or a page whose browser blocks the cookies. Each request creates another one. Store the refresh token: it is the only way to this customer.',
  },
})
class AnonymousGrant implements Grant<AnonymousBody> {
  constructor(
    private readonly creation: CustomerCreation,
    private readonly refreshTokens: CustomerRefreshTokens,
  ) {}

  async grant(request: GrantRequest<AnonymousBody>): Promise<GrantResult> {
    const { client, organization, groupId, browser, beforeNewCustomer } = request;
    if (client.clientType === 'web' && browser.origin === undefined) throw ERRORS.noOrigin();
    if (!client.mayUse(REFRESH_TOKEN_GRANT, true)) throw ERRORS.grantNotListed();
    await this.creation.askExtension(beforeNewCustomer);
    this.creation.takeLimit();
    const space = { organizationId: organization.id, groupId };
    const { customer, refreshToken } = await this.refreshTokens.beginVisitor(client.clientId, space);
    this.creation.auditCreated('browser', customer.entityId, organization.id);
    return { ...customer, refreshToken };
  }
}

@Module({ imports: [IdentityModule, RedemptionModule], providers: [AnonymousGrant] })
export class AnonymousGrantModule {}
