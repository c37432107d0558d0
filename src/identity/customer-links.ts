import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import { selectStatement } from '../platform/database/statement.js';
import { BrowserLinkParticipant } from './browser-link-participant.js';
import { FIND_SCOPE } from './customer-statements.js';
import { ForgottenBrowsers } from './forgotten-browsers.js';
import type { CandidateCredentials } from './identity-cookies.js';
import { KnownBrowsers } from './known-browsers.js';

/** The browsers whose link or own row has the customer, ended or not. */
const FIND_BROWSERS = selectStatement<[entityId: string, entityId: string], { browser_id: string }>(
  `SELECT browser_id FROM browser_link WHERE entity_id = ?
    UNION SELECT browser_id FROM customer_identity WHERE entity_id = ? AND browser_id IS NOT NULL`,
);

/** The browsers that lead to a customer. */
@Injectable()
export class CustomerLinks {
  constructor(
    private readonly database: Database,
    private readonly browsers: KnownBrowsers,
    private readonly participant: BrowserLinkParticipant,
    private readonly forgotten: ForgottenBrowsers,
  ) {}

  /**
   * Deletes the links to a customer, which the caller has ended by a higher generation of links. A browser that leads
   * to no other customer loses its secret. A copied cookie pair then does not recognise the browser.
   */
  async deleteEndedLinksOf(entityId: string): Promise<void> {
    const browsers = await this.database.select(FIND_BROWSERS, [entityId, entityId]);
    await this.participant.onErase(entityId);
    await this.forgotten.disableIfLeadNowhere(browsers.map(({ browser_id }) => browser_id));
  }

  /** Whether one of the browsers of a request leads to a customer. */
  async isLedTo(
    candidates: CandidateCredentials | undefined,
    entityId: string,
    organizationId: string,
  ): Promise<boolean> {
    if (!candidates) return false;
    const [row] = await this.database.select(FIND_SCOPE, [entityId, organizationId]);
    if (!row) return false;
    const browsers = await this.browsers.all(candidates, { organizationId, groupId: row.group_id });
    return browsers.some(({ customer }) => customer?.entityId === entityId);
  }
}
