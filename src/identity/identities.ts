import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { RateLimits } from '../platform/rate-limit/rate-limits.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { FIND, FIND_GENERATION, FIND_OF_BROWSER, INSERT, INSERT_IF_ABSENT } from './customer-statements.js';
import type { BrowserCredentials, CandidateCredentials } from './identity-cookies.js';
import { dayOf, type IdentityScope, KnownBrowsers } from './known-browsers.js';

/** A customer of an organization, with the values that a token needs. */
export interface Customer {
  entityId: string;
  organizationId: string;
  /** The generation at the time of the lookup. Tokens with a lower generation than the customer's have ended. */
  generation: number;
}

/** Finds and creates customer identities, for browsers and for backends (protocol §5.1 and §5.3). */
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
   * Finds the customer of a browser in a scope, or creates it. If the candidates belong to no browser, the method
   * creates a browser with a new secret. The returned secret is that of the browser.
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

  /** Creates a customer of a backend. No browser owns it. */
  async create(organizationId: string): Promise<Customer> {
    this.takeCreationLimit();
    const now = this.clock.now();
    const entityId = uuidv7(now);
    await this.database.insert(INSERT, [entityId, null, organizationId, '', null, null, new Date(now)]);
    this.auditCreation('agent', entityId, organizationId);
    return { entityId, organizationId, generation: 0 };
  }

  /**
   * Creates a customer with an id that the caller has stored before, unless the customer exists. Parallel and repeated
   * calls with one id get the same customer. No browser owns the customer.
   *
   * @param entityId from `uuidv7`
   * @returns the customer; `undefined` if it was erased
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

  /** Finds the customer of a browser in a scope and creates none. */
  async findForBrowser(
    candidates: CandidateCredentials | undefined,
    scope: IdentityScope,
  ): Promise<string | undefined> {
    const browser = candidates && (await this.browsers.recognise(candidates, scope));
    return browser?.customer?.entityId;
  }

  /** Finds a customer of an organization; `undefined` also if it was erased. */
  async find(entityId: string, organizationId: string): Promise<Customer | undefined> {
    const [row] = await this.database.select(FIND, [entityId, organizationId]);
    return row && { entityId, organizationId, generation: row.generation ?? 0 };
  }

  /** The generation of a customer of any organization: `undefined` if it was erased, 0 if it has no row. */
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

  /** The unique key lets one of several parallel first calls create the identity. All of them return that identity. */
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
    const [created] = await this.database.select(FIND_OF_BROWSER, [browserId, organizationId, groupId]);
    if (!created) throw new Error('an identity vanished while it was made');
    if (inserted > 0) this.auditCreation('browser', created.entity_id, organizationId);
    return { entityId: created.entity_id, generation: created.generation ?? 0 };
  }

  /** Takes from the limit of new customers per network, before each INSERT (protocol §2.14). */
  private takeCreationLimit(): void {
    const request = requestContext.current();
    const waitSeconds = request ? this.limits.takeForIp('identities', request.ip) : 0;
    if (waitSeconds > 0) throw OAuthError.rateLimited(waitSeconds, 'identities');
  }

  private auditCreation(kind: 'browser' | 'agent' | 'organization', id: string, organizationId: string): void {
    const subject = { kind: 'customer', id } as const;
    this.audit.record({ event: 'identity.created', outcome: 'success', actor: { kind }, subject, organizationId });
  }
}
