import { Injectable } from '@nestjs/common';
import { Identities } from '../../identity/identities.js';
import { IdentityCookies } from '../../identity/identity-cookies.js';
import { type Grant, type GrantRequest, type GrantResult } from '../../token/grant.js';
import { GrantType } from '../../token/grant-type.decorator.js';
import { COOKIE_DESCRIPTION, CookieBody } from './cookie.body.js';

/**
 * A request with valid identity cookies gets the customer of the browser. Any other request creates a customer
 * (protocol §4.1, §4.2).
 */
@Injectable()
@GrantType('cookie', { body: CookieBody, groups: true, responds: ['organization_id'], api: COOKIE_DESCRIPTION })
export class CookieGrant implements Grant<CookieBody> {
  constructor(
    private readonly identities: Identities,
    private readonly cookies: IdentityCookies,
  ) {}

  async grant({ organization, groupId, browser }: GrantRequest<CookieBody>): Promise<GrantResult> {
    const organizationId = organization.id;
    const candidates = this.cookies.read(browser.cookies, browser.origin);
    const customer = await this.identities.findOrCreateForBrowser(candidates, { organizationId, groupId });
    for (const line of this.cookies.setCookieLines(customer)) browser.setCookie(line);
    const { entityId, generation, lineage } = customer;
    return { entityId, organizationId, groupId, generation, ...(lineage && { lineage }) };
  }
}
