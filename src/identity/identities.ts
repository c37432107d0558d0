import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { IDEMPOTENT_WRITE } from '../platform/database/retry-policy.js';
import { sqlFlag } from '../platform/database/sql-dialect.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { uuidv7 } from '../platform/uuid.js';
import { BrowserLink } from './browser-link.entity.js';
import { BrowserRecognition, type RecognizedBrowser } from './browser-recognition.js';
import { type Customer, type CustomerCreator, type IdentityScope, scopeOf } from './customer.js';
import {
  type CustomerRow,
  FIND_CUSTOMER,
  INSERT_CUSTOMER,
  INSERT_CUSTOMER_IF_ABSENT,
  NOTE_TOKEN_DAY,
  newCustomerRow,
} from './customer-statements.js';
import type { BrowserCredentials, CandidateCredentials } from './identity-cookies.js';
import { HAS_ENDED_FLAG, insertLinks, lockBrowser, newLink, removeSecretsOfUnlinked, unlink } from './links.js';
import { newBrowser } from './new-browsers.js';
import { NewCustomers } from './new-customers.js';

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

type CustomerOfBrowser = Pick<Customer, 'entityId' | 'generation' | 'lineage'>;

/** Finds and creates customer identities, for browsers and for backends (protocol §5.1 and §5.3). */
@Injectable()
export class Identities {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly recognition: BrowserRecognition,
    private readonly newCustomers: NewCustomers,
  ) {}

  /**
   * Finds the customer of a browser in a scope, or creates it. If the candidates belong to no browser, the method
   * creates a browser with a new secret. The returned secret is that of the browser (costs: protocol §5.5).
   */
  async findOrCreateForBrowser(
    candidates: CandidateCredentials | undefined,
    scope: IdentityScope,
  ): Promise<Customer & BrowserCredentials> {
    const browser = await this.recognition.find(candidates, scope);
    const customer = browser && ((await this.customerOf(browser, scope)) ?? (await this.createFor(browser, scope)));
    if (!browser || !customer) return this.createWithBrowser(scope);
    const { entityId, generation, lineage } = customer;
    return { entityId, ...scope, generation, secret: browser.cookie, ...(lineage && { lineage }) };
  }

  /** Creates a customer of an organization, or of a group of it. No browser owns the customer. */
  async create(scope: string | IdentityScope): Promise<Customer> {
    const { organizationId, groupId } = scopeOf(scope);
    this.newCustomers.takeLimit();
    const now = this.clock.now();
    const entityId = uuidv7(now);
    const row = newCustomerRow(entityId, { organizationId, groupId }, 'agent', now);
    await this.database.insertIdempotent(INSERT_CUSTOMER, row);
    this.newCustomers.auditCreated('agent', entityId, organizationId);
    return { entityId, organizationId, groupId, generation: 0 };
  }

  /**
   * Creates a customer with an id that the caller has stored before, unless the customer exists. Parallel and repeated
   * calls with one id get the same customer. No browser owns the customer.
   *
   * @param entityId from `uuidv7`
   * @param scope the organization, or the organization and the group. An id belongs to one group only
   * @param options `creator`: the actor of the audit event
   * @returns the customer; `undefined` if it was erased. An erased id never gets a customer again: store a new id
   */
  async createIfAbsent(
    entityId: string,
    scope: string | IdentityScope,
    { creator = 'organization' as CustomerCreator } = {},
  ): Promise<Customer | undefined> {
    const { organizationId, groupId } = scopeOf(scope);
    const known = await this.find(entityId, organizationId);
    if (known) return assertInGroup(known, groupId);
    const taken = this.newCustomers.takeReturnableLimit();
    const row = newCustomerRow(entityId, { organizationId, groupId }, creator, this.clock.now());
    let attempts = 0;
    const insert = () => {
      attempts++;
      return this.database.execute(INSERT_CUSTOMER_IF_ABSENT, row);
    };
    if ((await IDEMPOTENT_WRITE.run(insert)) === 0) {
      if (attempts === 1) taken.giveBack();
      const other = await this.find(entityId, organizationId);
      const customer = other && assertInGroup(other, groupId);
      // probably by the first attempt, whose response was lost
      if (customer && attempts > 1) this.newCustomers.auditCreated(creator, entityId, organizationId);
      return customer;
    }
    this.newCustomers.auditCreated(creator, entityId, organizationId);
    return { entityId, organizationId, groupId, generation: 0 };
  }

  /**
   * Finds a customer of an organization that may get a token; `undefined` also if it was erased. The day is noted, so
   * that the purge does not delete the customer.
   */
  async find(entityId: string, organizationId: string): Promise<Customer | undefined> {
    const row = await this.rowOf(entityId, organizationId);
    return row && this.customerOfRow(row);
  }

  /**
   * Finds the customer that a grant has returned, as `find` does; `undefined` if it was erased.
   *
   * @throws Error if the organization has no customer with this id
   * @internal
   */
  async findGranted(entityId: string, organizationId: string): Promise<Customer | undefined> {
    const row = await this.rowOf(entityId, organizationId);
    if (row) return this.customerOfRow(row);
    throw new Error(
      'entityId is no customer of the organization of the result; return a Customer as `Identities` returned it',
    );
  }

  /**
   * Notes the day of a token in a transaction that gives a device to the customer. Each call changes the row, so that
   * transactions about one customer follow each other.
   *
   * @returns false if the customer was erased or purged
   * @internal
   */
  async noteTokenIn(manager: EntityManager, entityId: string): Promise<boolean> {
    return (await writeIn(manager, NOTE_TOKEN_DAY, [this.today(), entityId])) > 0;
  }

  /**
   * Notes the day on which a browser's customer gets a token without a link, such as a refreshed one, so that the purge
   * does not delete the customer (protocol §5.9). This costs at most one write per customer and day.
   *
   * @param tokenDay the value of `TOKEN_DAY`
   * @returns false if the customer was erased or purged in the meantime, so that it gets no token
   * @internal
   */
  async noteToken(entityId: string, tokenDay: number | null): Promise<boolean> {
    if (tokenDay === null || tokenDay >= this.today()) return true;
    return (await this.database.executeIdempotent(NOTE_TOKEN_DAY, [this.today(), entityId])) > 0;
  }

  /** The row of a customer of an organization, erased or not. */
  private async rowOf(entityId: string, organizationId: string): Promise<CustomerRow | undefined> {
    // a grant in JavaScript may return another value, with which the library of SQLite ends the process
    if (typeof entityId !== 'string') return undefined;
    const [row] = await this.database.select(FIND_CUSTOMER, [entityId]);
    // a database ignores spaces at the end of a text
    return row?.entity_id === entityId && row.organization_id === organizationId ? row : undefined;
  }

  private async customerOfRow(row: CustomerRow): Promise<Customer | undefined> {
    const { entity_id: entityId, organization_id: organizationId, group_id: groupId, generation, token_day } = row;
    if (groupId === null || !(await this.noteToken(entityId, token_day))) return undefined;
    return { entityId, organizationId, groupId, generation };
  }

  /** The first call of a day notes the day, so that the link is not idle. */
  private async customerOf(
    { browserId, customer }: RecognizedBrowser,
    { organizationId }: IdentityScope,
  ): Promise<CustomerOfBrowser | undefined> {
    if (!customer || customer.seenDay >= this.today()) return customer;
    const { entityId } = customer;
    const visit: [number, string, string, string] = [this.today(), browserId, entityId, organizationId];
    return (await this.database.executeIdempotent(NOTE_VISIT, visit)) > 0 ? customer : undefined;
  }

  private async createWithBrowser({ organizationId, groupId }: IdentityScope): Promise<Customer & BrowserCredentials> {
    this.newCustomers.takeLimit();
    const now = this.clock.now();
    const browser = newBrowser(undefined, now);
    const customer = { entityId: uuidv7(now), organizationId, groupId };
    await this.newCustomers.insert({ ...customer, browser, createdAt: now });
    this.newCustomers.auditCreated('browser', customer.entityId, organizationId);
    return { ...customer, generation: 0, secret: browser.cookie };
  }

  /**
   * Creates a customer for a known browser. Parallel first calls create only one customer, because each call first
   * changes the row of the browser.
   *
   * @returns `undefined` if the browser has no secret any more, or too many links
   */
  private async createFor(browser: RecognizedBrowser, scope: IdentityScope): Promise<CustomerOfBrowser | undefined> {
    const { browserId, endedId } = browser;
    const now = this.clock.now();
    const day = dayOf(now);
    const entityId = uuidv7(now);
    const takeLimit = this.newCustomers.limitOnce();
    const create = async (manager: EntityManager): Promise<CustomerOfBrowser | undefined> => {
      if (!(await lockBrowser(manager, browser))) return undefined;
      const [existing] = await selectIn(manager, FIND_LINK_OF_SCOPE, [browserId, scope.organizationId, scope.groupId]);
      // a parallel request has created the customer
      if (existing && existing.has_ended === 0 && existing.entity_id !== endedId)
        return { entityId: existing.entity_id, generation: existing.generation };
      if (existing) await unlink(manager, [{ browserId, entityId: existing.entity_id }]);
      // in place of `end_sessions`, which has not come to this browser yet
      if (existing?.browsers_ended && (await removeSecretsOfUnlinked(manager, [browserId], day)).length > 0)
        return undefined;
      if ((await manager.countBy(BrowserLink, { browserId })) >= MAX_LINKS_PER_BROWSER_COUNT) return undefined;
      takeLimit();
      await writeIn(manager, INSERT_CUSTOMER, newCustomerRow(entityId, scope, 'browser', now, day));
      const content = { origin: 'own', generation: 0, seenDay: day } as const;
      await insertLinks(manager, [newLink(browserId, { entityId, ...scope }, content)]);
      return { entityId, generation: 0 };
    };
    // after a lost response to the COMMIT, the second transaction finds the customer of the first one
    const result = await IDEMPOTENT_WRITE.run(() => this.database.transaction(create));
    if (result?.entityId === entityId) this.newCustomers.auditCreated('browser', entityId, scope.organizationId);
    return result;
  }

  private today(): number {
    return dayOf(this.clock.now());
  }
}

/** @throws Error if the customer is of another group, because an id belongs to one group */
function assertInGroup(customer: Customer, groupId: string): Customer {
  if (customer.groupId === groupId) return customer;
  throw new Error('createIfAbsent: the customer with this id belongs to another group; store one id for each group');
}
