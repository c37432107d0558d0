import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { sqlFlag } from '../platform/database/sql-dialect.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { BrowserLink } from './browser-link.entity.js';
import { BrowserRecognition, type LinkedCustomer, type RecognizedBrowser } from './browser-recognition.js';
import type { Customer, IdentityScope } from './customer.js';
import { CustomerCreation } from './customer-creation.js';
import { INSERT_CUSTOMER, newCustomerRow } from './customer-statements.js';
import { Forget } from './forget.js';
import { type BrowserCredentials, type CandidateCredentials, secretCookieOf } from './identity-cookies.js';
import { HAS_ENDED_FLAG, insertLinks, lockBrowser, newLink, unlink } from './links.js';
import { NewCustomers } from './new-customers.js';

type BrowserCustomer = Customer & BrowserCredentials;

/**
 * The number of links of a browser, with those that lead nowhere any more. A request for a further customer gets a new
 * browser.
 */
const MAX_LINKS_PER_BROWSER_COUNT = 500;

/** Matches no row if the link was ended or its customer was purged in the meantime. */
const NOTE_VISIT = writeStatement<[today: number, browserId: string, entityId: string, organizationId: string]>(
  'UPDATE browser_customer SET seen_day = ? WHERE browser_id = ? AND entity_id = ? AND organization_id = ?',
);

/** The customer of the scope's link, ended or not, and whether `end_sessions` has ended the customer's browsers. */
const FIND_LINK_OF_SCOPE = selectStatement<
  [browserId: string, organizationId: string, groupId: string],
  { entity_id: string; generation: number; has_ended: number; browsers_ended: number }
>(`SELECT link.entity_id, customer.generation, ${HAS_ENDED_FLAG},
      ${sqlFlag('customer.erased_at IS NULL AND customer.link_generation > link.generation')} AS browsers_ended
    FROM browser_customer link JOIN customer ON customer.entity_id = link.entity_id
    WHERE link.browser_id = ? AND link.organization_id = ? AND link.group_id = ?`);

/** Finds and creates the customers of browsers (protocol §5.3 and §5.6). */
@Injectable()
export class BrowserVisits {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly creation: CustomerCreation,
    private readonly browsers: BrowserRecognition,
    private readonly newCustomers: NewCustomers,
    private readonly forgotten: Forget,
  ) {}

  async findOrCreate(candidates: CandidateCredentials | undefined, scope: IdentityScope): Promise<BrowserCustomer> {
    const browser = await this.browsers.find(candidates, scope);
    if (!browser) return this.createWithBrowser(scope);
    const customer = await this.customerOf(browser, scope);
    if (!customer) return this.createWithBrowser(scope);
    const { entityId, generation, lineage } = customer;
    return { entityId, ...scope, generation, secret: browser.secret, ...(lineage && { lineage }) };
  }

  /** The first call of a day notes the day, so that the link is not idle. */
  private async customerOf(
    browser: RecognizedBrowser,
    scope: IdentityScope,
  ): Promise<Pick<LinkedCustomer, 'entityId' | 'generation' | 'lineage'> | undefined> {
    const { browserId, customer } = browser;
    const today = dayOf(this.clock.now());
    if (customer && customer.seenDay >= today) return customer;
    if (customer) {
      const { entityId } = customer;
      if ((await this.database.execute(NOTE_VISIT, [today, browserId, entityId, scope.organizationId])) > 0)
        return customer;
    }
    return this.createFor(browser, scope);
  }

  private async createWithBrowser({ organizationId, groupId }: IdentityScope): Promise<BrowserCustomer> {
    this.creation.takeLimit();
    const now = this.clock.now();
    const [browserId, entityId] = [uuidv7(now), uuidv7(now)];
    const secret = randomSecret('hex');
    const ids = { entityId, browserId, organizationId, groupId };
    await this.newCustomers.insert({ ...ids, secretHash: sha256(secret), day: dayOf(now), createdAt: new Date(now) });
    this.creation.auditCreated('browser', entityId, organizationId);
    return { entityId, organizationId, groupId, generation: 0, secret: secretCookieOf(browserId, secret) };
  }

  /**
   * Creates a customer for a known browser. Parallel first calls create one, because each of them changes the row of the
   * browser first.
   *
   * @returns `undefined` if the browser has no secret any more, or too many links
   */
  private async createFor(
    browser: RecognizedBrowser,
    scope: IdentityScope,
  ): Promise<{ entityId: string; generation: number } | undefined> {
    const entityId = uuidv7(this.clock.now());
    const takeLimit = this.creation.limitOfOne();
    const create = (manager: EntityManager) => this.createIn(manager, browser, scope, entityId, takeLimit);
    const result = await this.database.transaction(create);
    if (result?.entityId === entityId) this.creation.auditCreated('browser', entityId, scope.organizationId);
    return result;
  }

  private async createIn(
    manager: EntityManager,
    browser: RecognizedBrowser,
    scope: IdentityScope,
    entityId: string,
    takeLimit: () => void,
  ): Promise<{ entityId: string; generation: number } | undefined> {
    const { browserId, endedId } = browser;
    const { organizationId, groupId } = scope;
    if (!(await lockBrowser(manager, browser))) return undefined;
    const [existing] = await selectIn(manager, FIND_LINK_OF_SCOPE, [browserId, organizationId, groupId]);
    // a parallel request has created the customer
    if (existing && existing.has_ended === 0 && existing.entity_id !== endedId)
      return { entityId: existing.entity_id, generation: existing.generation };
    if (existing) await unlink(manager, [{ browserId, entityId: existing.entity_id }]);
    // in place of `end_sessions`, which has not come to this browser yet
    if (existing?.browsers_ended && (await this.forgotten.removeSecretsOfUnlinked(manager, [browserId])).has(browserId))
      return undefined;
    if ((await manager.countBy(BrowserLink, { browserId })) >= MAX_LINKS_PER_BROWSER_COUNT) return undefined;
    takeLimit();
    const now = this.clock.now();
    const day = dayOf(now);
    await writeIn(manager, INSERT_CUSTOMER, newCustomerRow(entityId, scope, 'browser', now, day));
    await insertLinks(manager, [
      newLink(browserId, { entityId, ...scope }, { origin: 'own', generation: 0, seenDay: day }),
    ]);
    return { entityId, generation: 0 };
  }
}
