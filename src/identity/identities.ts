import { Injectable } from '@nestjs/common';
import { LastTokenDays } from '../access-token/last-token-days.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { uuidv7 } from '../platform/uuid.js';
import { BrowserCustomers } from './browser-customers.js';
import type { Customer } from './customer.js';
import { CustomerCreation, type CustomerCreator } from './customer-creation.js';
import { FIND, FIND_CURRENT, INSERT, INSERT_IF_ABSENT } from './customer-statements.js';
import { inGroup, noted } from './found-customer.js';
import type { BrowserCredentials, CandidateCredentials } from './identity-cookies.js';
import { type IdentityScope, scopeOf } from './identity-scope.js';
import { KnownBrowsers } from './known-browsers.js';

/** Finds and creates customer identities, for browsers and for backends (protocol §5.1 and §5.3). */
@Injectable()
export class Identities {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly creation: CustomerCreation,
    private readonly browsers: KnownBrowsers,
    private readonly ofBrowsers: BrowserCustomers,
    private readonly lastTokenDays: LastTokenDays,
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
    return noted(await this.ofBrowsers.findOrCreate(candidates, scope));
  }

  /** Creates a customer of an organization, or of a group of it. No browser owns the customer. */
  async create(scope: string | IdentityScope): Promise<Customer> {
    const { organizationId, groupId } = scopeOf(scope);
    this.creation.takeLimit();
    const now = this.clock.now();
    const entityId = uuidv7(now);
    await this.database.insert(INSERT, [entityId, null, organizationId, groupId, null, null, null, new Date(now)]);
    this.creation.auditCreated('agent', entityId, organizationId);
    return noted({ entityId, organizationId, groupId, generation: 0 });
  }

  /**
   * Creates a customer with an id that the caller has stored before, unless the customer exists. Parallel and repeated
   * calls with one id get the same customer. No browser owns the customer.
   *
   * @param entityId from `uuidv7`
   * @param scope the organization, or the organization and the group. An id belongs to one group only
   * @param options `creator`: the actor of the audit event. `isLimitTaken` is only for the service itself; omit it
   * @returns the customer; `undefined` if it was erased. An erased id never gets a customer again: store a new id
   */
  async createIfAbsent(
    entityId: string,
    scope: string | IdentityScope,
    { creator = 'organization' as CustomerCreator, isLimitTaken = false } = {},
  ): Promise<Customer | undefined> {
    const { organizationId, groupId } = scopeOf(scope);
    const known = await this.find(entityId, organizationId);
    if (known) return inGroup(known, groupId);
    if (!isLimitTaken) this.creation.takeLimit();
    const createdAt = new Date(this.clock.now());
    const row = [entityId, null, organizationId, groupId, null, null, null, createdAt] as const;
    if ((await this.database.executeIdempotent(INSERT_IF_ABSENT, [...row])) === 0) {
      const other = await this.find(entityId, organizationId);
      return other && inGroup(other, groupId);
    }
    this.creation.auditCreated(creator, entityId, organizationId);
    return noted({ entityId, organizationId, groupId, generation: 0 });
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

  /**
   * Finds a customer of an organization that may get a token; `undefined` also if it was erased. The day is noted, so
   * that the purge does not delete the customer.
   */
  async find(entityId: string, organizationId: string): Promise<Customer | undefined> {
    const [row] = await this.database.select(FIND, [entityId, organizationId]);
    if (!row || !(await this.lastTokenDays.note(entityId, row.token_day))) return undefined;
    return noted({ entityId, organizationId, groupId: row.group_id, generation: row.generation ?? 0 });
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
