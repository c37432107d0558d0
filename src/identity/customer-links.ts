import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import { writeStatement } from '../platform/database/statement.js';
import { BrowserLinkParticipant } from './browser-link-participant.js';
import { FIND_SCOPE } from './customer-statements.js';
import type { CandidateCredentials } from './identity-cookies.js';
import { KnownBrowsers } from './known-browsers.js';

const RAISE_LINK_GENERATION = writeStatement<[entityId: string]>(
  'UPDATE customer_identity SET link_generation = COALESCE(link_generation, 0) + 1 WHERE entity_id = ?',
);

/** The browsers that lead to a customer. */
@Injectable()
export class CustomerLinks {
  constructor(
    private readonly database: Database,
    private readonly browsers: KnownBrowsers,
    private readonly participant: BrowserLinkParticipant,
  ) {}

  /**
   * Ends all links to a customer, also those of requests under way (protocol §3.12). The caller raises the customer's
   * generation first: an exchange reads the generation of links before it checks whether its code has ended.
   */
  async endLinksOf(entityId: string): Promise<void> {
    await this.database.executeIdempotent(RAISE_LINK_GENERATION, [entityId]);
    await this.participant.onErase(entityId);
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
