import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { type Customer, type CustomerSpace, spaceOf } from '../customer/customer.js';
import { type CustomerRow, Customers } from '../customer/customers.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { uuidv7 } from '../platform/uuid.js';
import { BrowserRecognition, isIn, type RecognizedBrowser } from '../session/browser-recognition.js';
import { Browsers } from '../session/browsers.js';
import { SessionLifetime } from '../session/session-lifetime.js';
import { Sessions } from '../session/sessions.js';
import { CustomerCreation } from './customer-creation.js';
import type { BrowserCredentials, CandidateCredentials } from './identity-cookies.js';

/** Maximum reads of the browser in one request, if parallel requests change it. */
const MAX_READS = 3;
/** The numbers of customers that a browser leads to. A request for a further one gets a new browser. */
const MAX_CUSTOMERS = 500;
/** For a further customer of the organization, the browser forgets the one used longest ago. */
const MAX_ORGANIZATION_CUSTOMERS = 50;

/** Finds and creates customers, for browsers and for backends (protocol §5.1 and §5.3). */
@Injectable()
export class CustomerService {
  /** @internal */
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly customers: Customers,
    private readonly recognition: BrowserRecognition,
    private readonly browsers: Browsers,
    private readonly sessions: Sessions,
    private readonly lifetime: SessionLifetime,
    private readonly creation: CustomerCreation,
  ) {}

  /**
   * Finds the customer of a browser in a space, or creates it. Without a pair of a known browser, the method creates a
   * browser with a new secret. The returned secret is that of the browser (costs: protocol §5.5).
   *
   * @param before called before a customer is created
   */
  async findOrCreateForBrowser(
    candidates: CandidateCredentials | undefined,
    space: CustomerSpace,
    before?: () => Promise<void>,
  ): Promise<Customer & BrowserCredentials> {
    let asked: Promise<void> | undefined;
    const askOnce = () => (asked ??= this.creation.askExtension(before));
    for (let read = 1; read <= MAX_READS; read++) {
      const recognized = await this.recognize(candidates, space);
      if (!recognized) break;
      const { secret, browserId, session } = recognized.browser;
      if (recognized.customer) return { ...recognized.customer, secret };
      if (session) continue; // a parallel request has noted the visit, or the session has ended
      await askOnce();
      const created = await this.createFor(browserId, space);
      if (created) return { ...created, secret };
      // a parallel request has created the customer, or forgotten the browser: another pair may be valid;
      // or the browser leads to too many customers
    }
    await askOnce();
    return this.createWithBrowser(space);
  }

  /** Creates a customer of an organization, or of a group of it. No browser owns the customer. */
  async create(space: string | CustomerSpace): Promise<Customer> {
    const { organizationId, groupId } = spaceOf(space);
    this.creation.takeLimit();
    const entityId = uuidv7(this.clock.now());
    const generation = await this.customers.insert(entityId, { organizationId, groupId }, 'agent');
    this.creation.auditCreated('agent', entityId, organizationId);
    return { entityId, organizationId, groupId, generation, hasUser: false };
  }

  /**
   * Finds a customer of an organization that may get a token; `undefined` also if it is being erased, or was linked to
   * a user's customer. The day is noted, so that the purge does not delete the customer.
   */
  async find(entityId: string, organizationId: string): Promise<Customer | undefined> {
    const row = await this.rowOf(entityId, organizationId);
    return row && this.customerOfRow(row);
  }

  /**
   * Finds the customer that a grant has returned, as `find` does; `undefined` if it is being erased.
   *
   * @throws Error if the organization has no customer with this id
   * @internal
   */
  async findGranted(entityId: string, organizationId: string): Promise<Customer | undefined> {
    const row = await this.rowOf(entityId, organizationId);
    if (row) return this.customerOfRow(row);
    throw new Error(
      'entityId is no customer of the organization of the result; return a Customer as `CustomerService` returned it',
    );
  }

  /** The row of a customer of an organization. */
  private async rowOf(entityId: string, organizationId: string): Promise<CustomerRow | undefined> {
    // a grant in JavaScript may return another value, with which the library of SQLite ends the process
    if (typeof entityId !== 'string') return undefined;
    const row = await this.customers.find(entityId);
    return row?.organization_id === organizationId ? row : undefined;
  }

  private async customerOfRow(row: CustomerRow): Promise<Customer | undefined> {
    const { entity_id: entityId, organization_id: organizationId, group_id: groupId, generation } = row;
    if (row.erased_at !== null || row.linked_to !== null) return undefined;
    const customer = { entityId, organizationId, groupId, generation, hasUser: Boolean(row.has_user) };
    return (await this.customers.noteDay(row)) ? customer : undefined;
  }

  /** The browser of one of the pairs, and the customer that it leads to. */
  private async recognize(
    candidates: CandidateCredentials | undefined,
    space: CustomerSpace,
  ): Promise<{ browser: RecognizedBrowser; customer: Customer | undefined } | undefined> {
    const browser = candidates && (await this.recognition.recognize(candidates.pairs, space));
    return browser && { browser, customer: await this.customerOf(browser, space) };
  }

  /** The customer that a recognized browser leads to; `undefined` if there is none. */
  private async customerOf(
    { browserId, session }: RecognizedBrowser,
    { organizationId, groupId }: CustomerSpace,
  ): Promise<Customer | undefined> {
    if (!session || !(await this.recognition.noteVisit(browserId, organizationId, session))) return undefined;
    const { entityId, hasUser, claims } = session;
    return { entityId, organizationId, groupId, generation: claims.gen, hasUser, session: claims };
  }

  private async createWithBrowser(space: CustomerSpace): Promise<Customer & BrowserCredentials> {
    this.creation.takeLimit();
    const createdAt = this.clock.now();
    const browser = this.browsers.create();
    const [entityId, sessionId] = [uuidv7(createdAt), uuidv7(createdAt)];
    const { expiresAt } = this.lifetime.beginningToday(space.organizationId, false);
    await this.browsers.insertVisitor({ ...space, entityId, sessionId, browser, createdAt, expiresAt });
    this.creation.auditCreated('browser', entityId, space.organizationId);
    return { ...customerOf(entityId, space, createdAt, sessionId), secret: browser.secret };
  }

  /**
   * Creates a customer for a known browser. Parallel first calls create only one customer, because each call first
   * changes the row of the browser.
   *
   * @returns `undefined` if the browser is gone, leads to the customer of a parallel call, or to too many customers
   */
  private async createFor(browserId: string, space: CustomerSpace): Promise<Customer | undefined> {
    const now = this.clock.now();
    const [entityId, sessionId] = [uuidv7(now), uuidv7(now)];
    this.creation.assertWithinLimit(); // a request beyond the limit costs no transaction
    const takeLimit = this.creation.limitOnce();
    const create = async (manager: EntityManager): Promise<Customer | undefined> => {
      if (!(await this.browsers.lockIn(manager, browserId))) return undefined;
      const leading = await this.browsers.leadingSessionsIn(manager, [browserId]);
      const isKnown = leading.some((session) => isIn(session, space));
      if (isKnown || leading.length >= MAX_CUSTOMERS) return undefined;
      const ofOrganization = leading.filter(({ organization_id }) => organization_id === space.organizationId);
      const oldest = ofOrganization[MAX_ORGANIZATION_CUSTOMERS - 1];
      if (oldest) await this.sessions.detachIn(manager, { browserId, id: oldest.id });
      // a session that has expired
      await this.sessions.detachIn(manager, { browserId, ...space });
      takeLimit();
      const generation = await this.customers.insertIn(manager, entityId, space, 'browser');
      const session = { id: sessionId, kind: 'own', customerId: entityId, browserId, ...space } as const;
      const end = this.lifetime.beginningToday(space.organizationId, false);
      await this.sessions.insertIn(manager, { ...session, ...end });
      return customerOf(entityId, space, generation, sessionId);
    };
    const customer = await this.database.transaction(create);
    if (customer) this.creation.auditCreated('browser', entityId, space.organizationId);
    return customer;
  }
}

function customerOf(entityId: string, space: CustomerSpace, generation: number, sid: string): Customer {
  return { entityId, ...space, generation, hasUser: false, session: { gen: generation, sid, ep: 0 } };
}
