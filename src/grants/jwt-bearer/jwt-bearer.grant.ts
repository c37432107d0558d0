import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  type Browser,
  type ClientApplication,
  type Grant,
  type GrantRequest,
  type GrantResult,
  GrantType,
  IdentityCookies,
  OAuthError,
  OrganizationUsers,
  type UserSignIn,
} from '../../public/grant.js';
import { Assertions } from './assertions.js';
import { JWT_BEARER_DESCRIPTION, JwtBearerBody } from './jwt-bearer.body.js';
import { JwtBearerClientSettings, JwtBearerSettings } from './jwt-bearer.settings.js';
import { UsedAssertions } from './used-assertions.js';

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** A user whom the organization's sign-in system authenticates gets tokens for one customer (RFC 7523 §2.1). */
@Injectable()
@GrantType(JWT_BEARER, {
  body: JwtBearerBody,
  settings: JwtBearerSettings,
  clientSettings: JwtBearerClientSettings,
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
    private readonly cookies: IdentityCookies,
  ) {}

  async grant({ body, client, organization, browser }: GrantRequest<JwtBearerBody>): Promise<GrantResult> {
    const settings = organization.grants[JWT_BEARER] as JwtBearerSettings | undefined;
    if (!settings) throw OAuthError.unauthorizedClient('grant_type: not for this organization');
    if (body.remember) assertMayRemember(client, browser);
    if (body.link) assertMayLink(settings, body);
    const organizationId = organization.id;
    const user = await this.assertions.verify(body.assertion, settings, { clientId: client.clientId, organizationId });
    const attempt = randomUUID();
    await this.usedAssertions.use(user, organizationId, attempt);
    const { entityId, groupId, generation, credentials } = await this.users.customerOf({
      organizationId,
      userId: user.userId,
      signIn: body.remember && this.signInOf(browser, body),
      attempt,
      creator: 'organization',
    });
    if (credentials) for (const line of this.cookies.setCookieLines(credentials)) browser.setCookie(line);
    return { entityId, organizationId, groupId, generation, attempt };
  }

  private signInOf({ cookies, origin }: Browser, { link }: JwtBearerBody): UserSignIn {
    return { credentials: this.cookies.read(cookies, origin), link: link !== undefined };
  }
}

/**
 * A browser sends its cookies with the requests of any page, so a sign-in needs an Origin. The endpoint has already
 * rejected an Origin that is not one of the client's (docs/decisions/0019).
 */
function assertMayRemember(client: ClientApplication, { origin }: Browser): void {
  const settings = client.grants[JWT_BEARER] as JwtBearerClientSettings | undefined;
  if (!settings?.remember?.includes('browser'))
    throw OAuthError.unauthorizedClient('remember: browser is not for this client');
  if (origin === undefined) throw OAuthError.invalidRequest('remember: needs an Origin');
}

function assertMayLink(settings: JwtBearerSettings, { remember }: JwtBearerBody): void {
  if (!remember) throw OAuthError.invalidRequest('link: only with remember=browser');
  if (!settings.link_browsers) throw OAuthError.unauthorizedClient('link: not for this organization');
}
