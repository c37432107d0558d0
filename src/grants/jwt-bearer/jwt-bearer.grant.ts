import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  type Browser,
  type Grant,
  type GrantRequest,
  type GrantResult,
  GrantType,
  Identities,
  IdentityCookies,
  OAuthError,
  OrganizationUsers,
} from '../../public/grant.js';
import { Assertions } from './assertions.js';
import { JWT_BEARER_DESCRIPTION, JwtBearerBody } from './jwt-bearer.body.js';
import { JwtBearerSettings } from './jwt-bearer.settings.js';
import { UsedAssertions } from './used-assertions.js';

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** A user whom the organization's sign-in system authenticates gets tokens for one customer (RFC 7523 §2.1). */
@Injectable()
@GrantType(JWT_BEARER, {
  body: JwtBearerBody,
  settings: JwtBearerSettings,
  form: true,
  optIn: true,
  responds: ['client_id', 'organization_id'],
  api: JWT_BEARER_DESCRIPTION,
})
export class JwtBearerGrant implements Grant<JwtBearerBody> {
  constructor(
    private readonly assertions: Assertions,
    private readonly usedAssertions: UsedAssertions,
    private readonly users: OrganizationUsers,
    private readonly identities: Identities,
    private readonly cookies: IdentityCookies,
  ) {}

  async grant({ body, client, organization, browser }: GrantRequest<JwtBearerBody>): Promise<GrantResult> {
    const settings = organization.grants[JWT_BEARER] as JwtBearerSettings | undefined;
    if (!settings) throw OAuthError.unauthorizedClient('grant_type: not for this organization');
    if (body.link) assertMayLink(settings, browser);
    const organizationId = organization.id;
    const user = await this.assertions.verify(body.assertion, settings, { clientId: client.clientId, organizationId });
    const attempt = randomUUID();
    await this.usedAssertions.use(user, organizationId, attempt);
    const browserCustomerId = body.link && (await this.customerOfBrowser(browser, organizationId));
    const customer = await this.users.customerOf({
      organizationId,
      userId: user.userId,
      browserCustomerId,
      attempt,
      creator: 'organization',
    });
    const { entityId, groupId, generation } = customer;
    return { entityId, organizationId, groupId, generation, attempt };
  }

  private customerOfBrowser({ cookies, origin }: Browser, organizationId: string): Promise<string | undefined> {
    return this.identities.findForBrowser(this.cookies.read(cookies, origin), { organizationId, groupId: '' });
  }
}

/**
 * A browser sends its cookies with the requests of any page, so a link requires an Origin. The endpoint has already
 * rejected an Origin that is not one of the client's (docs/decisions/0019).
 */
function assertMayLink(settings: JwtBearerSettings, { origin }: Browser): void {
  if (!settings.link_browsers) throw OAuthError.unauthorizedClient('link: not for this organization');
  if (origin === undefined) throw OAuthError.invalidRequest('link: requires the header Origin');
}
