import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { uuidv7 } from '../platform/uuid.js';
import { BrowserVisits } from './browser-visits.js';
import { type Customer, type IdentityScope, scopeOf } from './customer.js';
import { CustomerCreation, type CustomerCreator } from './customer-creation.js';
import {
  FIND,
  FIND_CURRENT,
  INSERT_CUSTOMER,
  INSERT_CUSTOMER_IF_ABSENT,
  newCustomerRow,
} from './customer-statements.js';
import type { BrowserCredentials, CandidateCredentials } from './identity-cookies.js';
import { LastTokenDays } from './last-token-days.js';

/** Finds and creates customer identities, for browsers and for backends (protocol §5.1 and §5.3). */
@Injectable()
export class Identities {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly creation: CustomerCreation,
    private readonly ofBrowsers: BrowserVisits,
    private readonly lastTokenDays: LastTokenDays,
  ) {}

  /**
   * Finds the customer of a browser in a scope, or creates it. If the candidates belong to no browser, the method
   * creates a browser with a new secret. The returned secret is that of the browser.
   *
   * A known customer costs one SELECT and, once a day, an UPDATE; a new one costs three INSERTs.
   */
  async findOrCreateForBrowser(
    candidates: CandidateCredentials | undefined,
    scope: IdentityScope,
  ): Promise<Customer & BrowserCredentials> {
    return this.ofBrowsers.findOrCreate(candidates, scope);
  }

  /** Creates a customer of an organization, or of a group of it. No browser owns the customer. */
  async create(scope: string | IdentityScope): Promise<Customer> {
    const { organizationId, groupId } = scopeOf(scope);
    this.creation.takeLimit();
    const now = this.clock.now();
    const entityId = uuidv7(now);
    const row = newCustomerRow(entityId, { organizationId, groupId }, 'agent', now);
    await this.database.insert(INSERT_CUSTOMER, row);
    this.creation.auditCreated('agent', entityId, organizationId);
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
    const taken = this.creation.takeReturnableLimit();
    const row = newCustomerRow(entityId, { organizationId, groupId }, creator, this.clock.now());
    if ((await this.database.executeIdempotent(INSERT_CUSTOMER_IF_ABSENT, row)) === 0) {
      taken.giveBack();
      const other = await this.find(entityId, organizationId);
      return other && assertInGroup(other, groupId);
    }
    this.creation.auditCreated(creator, entityId, organizationId);
    return { entityId, organizationId, groupId, generation: 0 };
  }

  /**
   * Creates a customer without a group in a transaction of the caller, who takes the limit and audits the creation.
   *
   * @internal
   */
  async createIn(
    manager: EntityManager,
    entityId: string,
    organizationId: string,
    creator: CustomerCreator,
  ): Promise<void> {
    const row = newCustomerRow(entityId, scopeOf(organizationId), creator, this.clock.now());
    await writeIn(manager, INSERT_CUSTOMER, row);
  }

  /**
   * Finds a customer of an organization that may get a token; `undefined` also if it was erased. The day is noted, so
   * that the purge does not delete the customer.
   */
  async find(entityId: string, organizationId: string): Promise<Customer | undefined> {
    const [row] = await this.database.select(FIND, [entityId, organizationId]);
    if (!row || !(await this.lastTokenDays.note(entityId, row.token_day))) return undefined;
    return { entityId, organizationId, groupId: row.group_id, generation: row.generation };
  }

  /**
   * The values of a customer of any organization that a token needs: `undefined` if it was erased. A customer without a
   * row has generation 0 and no group. The day is noted as by `find`.
   */
  async currentOf(entityId: string): Promise<Pick<Customer, 'groupId' | 'generation'> | undefined> {
    const [row] = await this.database.select(FIND_CURRENT, [entityId]);
    if (row?.group_id === null) return undefined;
    if (row && !(await this.lastTokenDays.note(entityId, row.token_day))) return undefined;
    return { groupId: row?.group_id ?? '', generation: row?.generation ?? 0 };
  }
}

/** @throws Error if the customer is of another group, because an id belongs to one group */
function assertInGroup(customer: Customer, groupId: string): Customer {
  if (customer.groupId === groupId) return customer;
  throw new Error('createIfAbsent: the customer with this id belongs to another group; store one id for each group');
}
