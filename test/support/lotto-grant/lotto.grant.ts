import {
  Clock,
  CustomerService,
  Database,
  type Grant,
  type GrantRequest,
  type GrantResult,
  GrantType,
  IdentityCookies,
  insertIgnoreStatement,
  OAuthError,
} from '../../../src/public/grant.js';
import { LottoBody } from './lotto.body.js';
import { LottoSettings } from './lotto.settings.js';
import { LottoTicket } from './lotto-ticket.entity.js';

const REDEEM = insertIgnoreStatement({ into: LottoTicket, columns: ['client_id', 'ticket', 'won_at'] });

/** The first request with a winning ticket gets a token for the customer of its browser, or for a new customer. */
@GrantType('lotto', {
  body: LottoBody,
  settings: LottoSettings,
  responds: ['client_id', 'prize'],
  attempts: { per: ['network'], limit: '100/600' },
})
export class LottoGrant implements Grant<LottoBody> {
  constructor(
    private readonly customers: CustomerService,
    private readonly cookies: IdentityCookies,
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  async grant({ body, client, groupId, browser }: GrantRequest<LottoBody>): Promise<GrantResult> {
    const draw = client.grants.lotto as LottoSettings | undefined;
    if (!draw) throw OAuthError.unauthorizedClient('grant_type: this client has no draw');
    if (!body.ticket.endsWith(draw.winning_ending)) throw OAuthError.invalidGrant('not a winning ticket');
    await this.redeem(client.clientId, body.ticket); // before the customer, so that a rejected request creates none
    const organizationId = body.organization_id;
    const candidates = this.cookies.read(browser.cookies, browser.origin);
    const customer = await this.customers.findOrCreateForBrowser(candidates, { organizationId, groupId });
    for (const line of this.cookies.setCookieLines(customer)) browser.setCookie(line);
    return { ...customer, response: { prize: draw.prize } };
  }

  /** Inserts the ticket. The primary key decides which of several parallel requests wins, so no read is needed. */
  private async redeem(clientId: string, ticket: string): Promise<void> {
    const inserted = await this.database.execute(REDEEM, [clientId, ticket, new Date(this.clock.now())]);
    if (inserted !== 1) throw OAuthError.invalidGrant('a ticket that has won before');
  }
}
