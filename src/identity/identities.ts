import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import { insertIgnoreStatement, insertStatement, selectStatement } from '../platform/database/statement.js';
import { RateLimits } from '../platform/rate-limit/rate-limits.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { CustomerIdentity } from './customer-identity.entity.js';
import type { BrowserCredentials, CandidateCredentials } from './identity-cookies.js';
import { dayOf, type IdentityScope, KnownBrowsers } from './known-browsers.js';

/** A customer of an organization, as a token is issued for it. */
export interface Customer {
  entityId: string;
  organizationId: string;
  /** The customer's generation when it was found. A token with a lower one than the customer's has ended. */
  generation: number;
}

const FIND_OF_BROWSER = selectStatement<
  [browserId: string, organizationId: string, groupId: string],
  EntityRow<CustomerIdentity, 'entity_id' | 'generation'>
>({
  columns: ['entity_id', 'generation'],
  from: 'customer_identity WHERE browser_id = ? AND organization_id = ? AND group_id = ?',
  batch: true,
});

const FIND = selectStatement<[entityId: string, organizationId: string], EntityRow<CustomerIdentity, 'generation'>>({
  columns: ['generation'],
  from: 'customer_identity WHERE entity_id = ? AND organization_id = ?',
  batch: true,
});

const FIND_GENERATION = selectStatement<
  [entityId: string],
  EntityRow<CustomerIdentity, 'organization_id' | 'generation'>
>({
  columns: ['organization_id', 'generation'],
  from: 'customer_identity WHERE entity_id = ?',
  batch: true,
});

const NEW_ROW = {
  into: CustomerIdentity,
  columns: ['entity_id', 'browser_id', 'organization_id', 'group_id', 'secret_hash', 'last_seen_day', 'created_at'],
} as const;

const INSERT = insertStatement({ ...NEW_ROW, batch: true });
const INSERT_IF_ABSENT = insertIgnoreStatement(NEW_ROW);

/** Who a customer is: creates identities, for browsers that are not known and for backends (protocol §5.1 and §5.3). */
@Injectable()
export class Identities {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly audit: Audit,
    private readonly limits: RateLimits,
    private readonly browsers: KnownBrowsers,
  ) {}

  /**
   * The customer of a browser in a scope, made if the browser has none there yet. If the candidates belong to no browser, a
   * new browser with a new secret is made. The returned secret is that of the browser.
   *
   * A known customer costs one SELECT and, once a day, an UPDATE; a new one costs one INSERT.
   */
  async findOrCreateForBrowser(
    candidates: CandidateCredentials | undefined,
    scope: IdentityScope,
  ): Promise<Customer & BrowserCredentials> {
    const browser = candidates && (await this.browsers.recognise(candidates, scope));
    if (!browser) return this.newBrowser(scope);
    const customer = browser.customer ?? (await this.newIdentity(browser.browserId, scope));
    return { ...customer, organizationId: scope.organizationId, secret: browser.secret };
  }

  /** A new customer of a backend, whom no browser owns. */
  async create(organizationId: string): Promise<Customer> {
    this.takeCreationLimit();
    const now = this.clock.now();
    const entityId = uuidv7(now);
    await this.database.insert(INSERT, [entityId, null, organizationId, '', null, null, new Date(now)]);
    this.auditCreation('agent', entityId, organizationId);
    return { entityId, organizationId, generation: 0 };
  }

  /**
   * Makes a customer whose id its caller has written down first, where it is not made yet: an id of `uuidv7`, whom no
   * browser owns. Whoever calls for the same id, in parallel or again after an answer was lost, makes the same customer.
   *
   * @returns the customer; `undefined` when it was erased
   */
  async createIfAbsent(entityId: string, organizationId: string): Promise<Customer | undefined> {
    const known = await this.find(entityId, organizationId);
    if (known) return known;
    this.takeCreationLimit();
    const createdAt = new Date(this.clock.now());
    const row = [entityId, null, organizationId, '', null, null, createdAt] as const;
    if ((await this.database.executeIdempotent(INSERT_IF_ABSENT, [...row])) === 0)
      return this.find(entityId, organizationId);
    this.auditCreation('organization', entityId, organizationId);
    return { entityId, organizationId, generation: 0 };
  }

  /** The customer that a browser has in a scope, where it has one; nobody is made. */
  async findForBrowser(
    candidates: CandidateCredentials | undefined,
    scope: IdentityScope,
  ): Promise<string | undefined> {
    const browser = candidates && (await this.browsers.recognise(candidates, scope));
    return browser?.customer?.entityId;
  }

  /** The customer of an organization with this id; `undefined` also for an erased one. */
  async find(entityId: string, organizationId: string): Promise<Customer | undefined> {
    const [row] = await this.database.select(FIND, [entityId, organizationId]);
    return row && { entityId, organizationId, generation: row.generation ?? 0 };
  }

  /** The generation of a customer of any organization; `undefined` when it was erased, 0 for an id without a row. */
  async generationOf(entityId: string): Promise<number | undefined> {
    const [row] = await this.database.select(FIND_GENERATION, [entityId]);
    return row?.organization_id === null ? undefined : (row?.generation ?? 0);
  }

  private async newBrowser({ organizationId, groupId }: IdentityScope): Promise<Customer & BrowserCredentials> {
    this.takeCreationLimit();
    const now = this.clock.now();
    const entityId = uuidv7(now);
    const secret = randomSecret('hex');
    await this.database.insert(INSERT, [
      entityId,
      entityId,
      organizationId,
      groupId,
      sha256(secret),
      dayOf(now),
      new Date(now),
    ]);
    this.auditCreation('browser', entityId, organizationId);
    return { entityId, organizationId, generation: 0, secret };
  }

  /** Of parallel first calls to a scope one makes the identity, by the unique key; all get that one. */
  private async newIdentity(
    browserId: string,
    { organizationId, groupId }: IdentityScope,
  ): Promise<Omit<Customer, 'organizationId'>> {
    this.takeCreationLimit();
    const now = this.clock.now();
    const inserted = await this.database.execute(INSERT_IF_ABSENT, [
      uuidv7(now),
      browserId,
      organizationId,
      groupId,
      null,
      null,
      new Date(now),
    ]);
    const [made] = await this.database.select(FIND_OF_BROWSER, [browserId, organizationId, groupId]);
    if (!made) throw new Error('an identity vanished while it was made');
    if (inserted > 0) this.auditCreation('browser', made.entity_id, organizationId);
    return { entityId: made.entity_id, generation: made.generation ?? 0 };
  }

  /** Before each INSERT: so many new customers of one network (protocol §2.14). */
  private takeCreationLimit(): void {
    const request = requestContext.current();
    const wait = request ? this.limits.takeForAddress('identities', request.ip) : 0;
    if (wait > 0) throw OAuthError.rateLimited(wait, 'identities');
  }

  private auditCreation(kind: 'browser' | 'agent' | 'organization', id: string, organizationId: string): void {
    const subject = { kind: 'customer', id } as const;
    this.audit.record({ event: 'identity.created', outcome: 'success', actor: { kind }, subject, organizationId });
  }
}
