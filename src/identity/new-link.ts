import type { TokenLineage } from '../access-token/token-lineage.js';
import type { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import type { Clock } from '../platform/clock.js';
import type { Database } from '../platform/database/database.js';
import { dayOf } from '../platform/day.js';
import { randomSecret } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import type { CustomerCreation } from './customer-creation.js';
import { FIND_SCOPE } from './customer-statements.js';
import type { CandidateCredentials } from './identity-cookies.js';
import type { IdleRule } from './idle-rule.js';
import type { KnownBrowser, KnownBrowsers } from './known-browsers.js';
import { type LedCustomer, selectLedCustomers } from './led-customers.js';
import { deleteEndedCopies, deleteNewBrowser, insertNewBrowser } from './new-browser-rows.js';
import { ancestorsOf, linkOfTransfer, type TransferredCustomer, unendingLink } from './transferred-customer.js';

interface Services {
  database: Database;
  clock: Clock;
  browsers: KnownBrowsers;
  audit: Audit;
  idleRule: IdleRule;
  creation: CustomerCreation;
}

/** The number of further customers that a new browser leads to. The rest stay with the earlier browser. */
const MAX_FURTHER_CUSTOMERS = 100;

/** One more, because the customer that is replaced is among them. */
const FIND_LAST_SEEN = selectLedCustomers('= ?', `ORDER BY scope_seen_day DESC LIMIT ${MAX_FURTHER_CUSTOMERS + 1}`);

/**
 * A new browser for a transferred customer. Only the response has its secret, so it leads nowhere unless the redemption
 * succeeds. Nothing is added to the earlier browser.
 */
export class NewLink {
  readonly secret = randomSecret('hex');
  private readonly browserId: string;
  private customer: TransferredCustomer;
  private earlier: KnownBrowser | undefined;
  /** Whether the earlier browser already leads to the customer, by its own row or by a link without a transfer. */
  private isOfEarlier = false;
  private attempt: string | undefined;

  constructor(
    private readonly services: Services,
    private readonly candidates: CandidateCredentials | undefined,
    private readonly replace: boolean,
  ) {
    this.browserId = uuidv7(services.clock.now());
  }

  /**
   * @throws OAuthError `identity_conflict` if the browser has another customer in the organization and group;
   * `temporarily_unavailable` if the network created too many customers and browsers
   */
  async prepare(code: { subject: string; organizationId: string; lineage: TokenLineage }): Promise<void> {
    const { database, browsers } = this.services;
    const { subject: entityId, organizationId, lineage } = code;
    const [row] = await database.select(FIND_SCOPE, [entityId, organizationId]);
    if (!row) throw OAuthError.invalidGrant('code: its customer was erased');
    const scope = { organizationId, groupId: row.group_id };
    this.customer = { ...scope, entityId, lineage, linkGeneration: row.link_generation ?? 0 };
    const [earlier] = this.candidates ? await browsers.all(this.candidates, scope) : [];
    const knownId = earlier?.customer?.entityId;
    if (knownId !== undefined && knownId !== entityId && !this.replace) throw OAuthError.identityConflict();
    this.services.creation.takeLimit();
    this.earlier = earlier;
    this.isOfEarlier = knownId === entityId && earlier?.customer?.lineage === undefined;
  }

  async store(attempt: string): Promise<void> {
    this.attempt = attempt;
    const { database, clock } = this.services;
    const { browserId, secret, earlier } = this;
    const copies = await this.copies();
    const links = [...(this.isOfEarlier ? [] : [linkOfTransfer(this.customer, attempt, this.today)]), ...copies];
    const ancestors = this.isOfEarlier ? [] : ancestorsOf(this.customer, attempt);
    const origin = earlier && { madeFrom: earlier.browserId };
    await insertNewBrowser(database, { browserId, secret, now: clock.now(), links, attempt, ancestors, ...origin });
    if (earlier) await deleteEndedCopies(database, earlier.browserId, browserId, copies);
  }

  /** Deletes the rows of an attempt that failed or did not redeem the code. */
  discard(): Promise<void> {
    return deleteNewBrowser(this.services.database, this.browserId, this.attempt);
  }

  audit(): void {
    const { entityId, organizationId } = this.customer;
    const subject = { kind: 'customer', id: entityId } as const;
    const details = { browser: this.browserId, redemption: this.attempt as string };
    const actor = { kind: 'customer' } as const;
    this.services.audit.record({
      event: 'browser.linked',
      outcome: 'success',
      actor,
      subject,
      organizationId,
      details,
    });
  }

  private get today(): number {
    return dayOf(this.services.clock.now());
  }

  /** What the new browser gets from the earlier one. */
  private async copies(): Promise<LedCustomer[]> {
    if (!this.earlier) return [];
    const { organizationId, groupId } = this.customer;
    const { browserId } = this.earlier;
    const all = await this.services.database.select(FIND_LAST_SEEN, [browserId, browserId]);
    const further = all
      .filter((each) => each.organization_id !== organizationId || each.group_id !== groupId)
      .filter((each) => !this.services.idleRule.isIdle(each.organization_id, each.scope_seen_day))
      .slice(0, MAX_FURTHER_CUSTOMERS);
    return this.isOfEarlier ? [unendingLink(this.customer, this.today), ...further] : further;
  }
}
