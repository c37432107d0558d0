import { Injectable } from '@nestjs/common';
import { Identities } from '../../../src/identity/identities.js';
import { IdentityCookies } from '../../../src/identity/identity-cookies.js';
import { OAuthError } from '../../../src/oauth/oauth-error.js';
import { type Grant, type Granted, type GrantRequest, GrantType } from '../../../src/token/grant.js';
import { LottoBody } from './lotto.body.js';
import { LottoSettings } from './lotto.settings.js';

/** Whoever names the winning ticket of a client's draw is a customer: the one its browser is known as, or a new one. */
@Injectable()
@GrantType('lotto', { body: LottoBody, settings: LottoSettings, responds: ['client_id', 'prize'] })
export class LottoGrant implements Grant<LottoBody> {
  constructor(
    private readonly identities: Identities,
    private readonly cookies: IdentityCookies,
  ) {}

  async grant({ body, client, groupId, browser }: GrantRequest<LottoBody>): Promise<Granted> {
    const draw = client.grants.lotto as LottoSettings | undefined;
    if (!draw) throw OAuthError.unauthorizedClient('grant_type: this client has no draw');
    if (body.ticket !== draw.winning_ticket) throw OAuthError.invalidGrant('not the winning ticket');
    const organizationId = body.organization_id;
    const customer = await this.identities.ofBrowser(this.cookies.read(browser.cookies), { organizationId, groupId });
    for (const line of this.cookies.write(customer)) browser.setCookie(line);
    return { entityId: customer.entityId, organizationId, response: { prize: draw.prize } };
  }
}
