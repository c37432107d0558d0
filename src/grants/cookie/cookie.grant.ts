import { Injectable, Module } from '@nestjs/common';
import { IsString } from 'class-validator';
import { CustomerService } from '../../identity/customer.service.js';
import { IdentityModule } from '../../identity/identity.module.js';
import { IdentityCookies } from '../../identity/identity-cookies.js';
import { IsUuid } from '../../platform/validation/text-rules.js';
import { ApiEnum, Optional } from '../../platform/validation/validation.js';
import { type Grant, GrantBody, type GrantRequest, type GrantResult, GrantType } from '../../token/grant.js';

/** The parameters of protocol §4.1. On the path of a group (protocol §4.2) `organization_id` may be omitted. */
export class CookieBody extends GrantBody {
  @ApiEnum(['token'], 'Always `token`.')
  response_type!: 'token';

  @IsUuid()
  override organization_id!: string;

  @Optional()
  @IsString()
  override redirect_uri?: string;
}

/** Valid identity cookies lead to the customer of the browser. Without them, a customer is created (protocol §4.1). */
@Injectable()
@GrantType('cookie', {
  body: CookieBody,
  uses: 'unlimited',
  readsCustomer: true,
  groups: true,
  responds: ['organization_id'],
  api: {
    description:
      'A page gets a token for the customer of its browser. Two cookies recognize the browser. A browser without them gets a new customer. Send the request with credentials.',
  },
})
export class CookieGrant implements Grant<CookieBody> {
  constructor(
    private readonly customers: CustomerService,
    private readonly cookies: IdentityCookies,
  ) {}

  async grant({ organization, groupId, browser, beforeNewCustomer }: GrantRequest<CookieBody>): Promise<GrantResult> {
    const organizationId = organization.id;
    const candidates = this.cookies.read(browser.cookies, browser.origin);
    const space = { organizationId, groupId };
    const customer = await this.customers.findOrCreateForBrowser(candidates, space, beforeNewCustomer);
    for (const line of this.cookies.setCookieLines(customer)) browser.setCookie(line);
    const { entityId, hasUser, session } = customer;
    return { entityId, organizationId, groupId, hasUser, session };
  }
}

@Module({ imports: [IdentityModule], providers: [CookieGrant] })
export class CookieGrantModule {}
