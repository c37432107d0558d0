import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { uuidv7 } from '../platform/uuid.js';
import { BrowserCustomers } from './browser-customers.js';
import type { Customer } from './customer.js';
import { CustomerCreation, type CustomerCreator } from './customer-creation.js';
import { FIND, FIND_CURRENT, INSERT, INSERT_IF_ABSENT } from './customer-statements.js';
import type { BrowserCredentials, CandidateCredentials } from './identity-cookies.js';
import { type IdentityScope, KnownBrowsers } from './known-browsers.js';

/** Finds and creates customer identities, for browsers and for backends (protocol §5.1 and §5.3). */
@Injectable()
export class Identities {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly creation: CustomerCreation,
    private readonly browsers: KnownBrowsers,
    private readonly ofBrowsers: BrowserCustomers,
  ) {}

  /**
   * Finds the customer of a browser in a scope, or creates it. If the candidates belong to no browser, the method
   * creates a browser with a new secret. The returned secret is that of the browser.
   *
   * A known customer costs one SELECT and, once a day, an UPDATE; a new one costs one INSERT.
   */
  async findOrCreateForBrowser(
    candidates: CandidateCredentials | undefined,
    scope: IdentityScope,
  ): Promise<Customer & BrowserCredentials> {
    return this.ofBrowsers.findOrCreate(candidates, scope);
  }

  /** Creates a customer of a backend. No browser owns it. */
  async create(organizationId: string): Promise<Customer> {
    this.creation.takeLimit();
    const now = this.clock.now();
    const entityId = uuidv7(now);
    await this.database.insert(INSERT, [entityId, null, organizationId, '', null, null, null, new Date(now)]);
    this.creation.auditCreated('agent', entityId, organizationId);
    return { entityId, organizationId, groupId: '', generation: 0 };
  }

  /**
   * Creates a customer with an id that the caller has stored before, unless the customer exists. Parallel and repeated
   * calls with one id get the same customer. No browser owns the customer.
   *
   * @param entityId from `uuidv7`
   * @param options `isLimitTaken`: the caller has called `CustomerCreation.takeLimit` for this customer
   * @returns the customer; `undefined` if it was erased
   */
  async createIfAbsent(
    entityId: string,
    organizationId: string,
    { creator = 'organization' as CustomerCreator, isLimitTaken = false } = {},
  ): Promise<Customer | undefined> {
    const known = await this.find(entityId, organizationId);
    if (known) return known;
    if (!isLimitTaken) this.creation.takeLimit();
    const createdAt = new Date(this.clock.now());
    const row = [entityId, null, organizationId, '', null, null, null, createdAt] as const;
    if ((await this.database.executeIdempotent(INSERT_IF_ABSENT, [...row])) === 0)
      return this.find(entityId, organizationId);
    this.creation.auditCreated(creator, entityId, organizationId);
    return { entityId, organizationId, groupId: '', generation: 0 };
  }

  /**
   * Finds the customer of a browser in a scope and creates none. A customer that came by a transfer does not count,
   * because another browser leads to it too.
   */
  async findForBrowser(
    candidates: CandidateCredentials | undefined,
    scope: IdentityScope,
  ): Promise<string | undefined> {
    const browser = candidates && (await this.browsers.recognise(candidates, scope));
    return browser?.customer?.isLinked ? undefined : browser?.customer?.entityId;
  }

  /** Finds a customer of an organization; `undefined` also if it was erased. */
  async find(entityId: string, organizationId: string): Promise<Customer | undefined> {
    const [row] = await this.database.select(FIND, [entityId, organizationId]);
    return row && { entityId, organizationId, groupId: row.group_id, generation: row.generation ?? 0 };
  }

  /**
   * The values of a customer of any organization that a token needs: `undefined` if it was erased. A customer without a
   * row has generation 0 and no group.
   */
  async currentOf(entityId: string): Promise<Pick<Customer, 'groupId' | 'generation'> | undefined> {
    const [row] = await this.database.select(FIND_CURRENT, [entityId]);
    if (row?.group_id === null) return undefined;
    return { groupId: row?.group_id ?? '', generation: row?.generation ?? 0 };
  }
}
