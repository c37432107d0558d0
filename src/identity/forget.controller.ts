import { HttpCode, Post } from '@nestjs/common';
import { Matches, MaxLength } from 'class-validator';
import { GROUP_ID, GROUP_ID_RULE } from '../customer/customer.js';
import type { Browser } from '../http/routes/client-request.js';
import { CallingBrowser, ClientRequest } from '../http/routes/parameter.decorators.js';
import { Limits } from '../oauth/limits.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty, ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/listener.decorators.js';
import { keysOfSite } from '../platform/network.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { IsUuid } from '../platform/validation/text-rules.js';
import { ApiOptionalString, ApiString, Optional } from '../platform/validation/validation.js';
import { CustomerRefreshTokens } from '../redemption/customer-refresh-tokens.js';
import { ForgetService } from './forget.service.js';
import { IdentityCookies } from './identity-cookies.js';

/** The parameters of protocol §4.13. */
class ForgetBody {
  @ApiString('The client of the page. A present `Origin` header must be an origin of this client.', EXAMPLE.clientId)
  client_id!: string;

  @IsUuid()
  @ApiProperty('The organization that forgets the browser.', EXAMPLE.organizationId)
  organization_id!: string;

  @Optional()
  @Matches(GROUP_ID, { message: GROUP_ID_RULE })
  @ApiProperty('Only this group forgets the browser. If omitted, the whole organization does.', EXAMPLE.groupId)
  group_id?: string;

  @ApiOptionalString(
    'A refresh token of the client, in place of cookies: it gives no token any more. Other tokens and devices stay.',
    EXAMPLE.refreshToken,
  )
  @MaxLength(1024)
  refresh_token?: string;
}

/** Lets a browser be forgotten by an organization (protocol §4.13). */
@PublicController('v2/customer/forget')
export class ForgetController {
  constructor(
    private readonly cookies: IdentityCookies,
    private readonly forgetService: ForgetService,
    private readonly refreshTokens: CustomerRefreshTokens,
    private readonly limits: Limits,
  ) {}

  @Post()
  @ApiRoute({
    summary: 'Forget this browser in an organization',
    description:
      'The next request by the grant `cookie` from this browser creates a new customer. Send the request with credentials. Access tokens stay valid. The response is the same without cookies.',
  })
  @HttpCode(200)
  async forget(
    @ClientRequest(ForgetBody) { body, client, organization }: ClientRequest<ForgetBody>,
    @CallingBrowser() browser: Browser,
  ): Promise<object> {
    this.limits.takeKeys('forgets', keysOfSite(requestContext.required().ip));
    const candidates = this.cookies.read(browser.cookies, browser.origin);
    const space = { organizationId: organization.id, groupId: body.group_id };
    if (body.refresh_token !== undefined) await this.refreshTokens.forget(body.refresh_token, client.clientId, space);
    const leadsNowhere = await this.forgetService.forget(candidates, space);
    if (leadsNowhere) for (const line of this.cookies.clearCookieLines()) browser.setCookie(line);
    return {};
  }
}
