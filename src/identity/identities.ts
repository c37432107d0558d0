import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { RateLimits } from '../platform/rate-limit/rate-limits.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import type { BrowserCredentials, CandidateCredentials } from './identity-cookies.js';
import { dayOf, KnownBrowsers, type Place } from './known-browsers.js';

/** A customer of an organization, as a token is issued for it. */
export interface Customer {
  entityId: string;
  organizationId: string;
  /** The customer's generation when it was found. A token with a lower one than the customer's has ended. */
  generation: number;
}

const OF_BROWSER =
  'SELECT entity_id, generation FROM customer_identity WHERE browser_id = ? AND organization_id = ? AND group_id = ?';

const INSERT = `INTO customer_identity
  (entity_id, browser_id, organization_id, group_id, secret_hash, last_seen_day, created_at)
  VALUES (?, ?, ?, ?, ?, ?, ?)`;

/** Who a customer is: creates identities, for browsers that are not known and for backends (specification 4.1 and 4.2, contract section 4). */
@Injectable()
export class Identities {
  private readonly insertIfAbsent: string;

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly audit: Audit,
    private readonly limits: RateLimits,
    private readonly browsers: KnownBrowsers,
  ) {
    this.insertIfAbsent = `INSERT ${database.ignore} ${INSERT}`;
  }

  /**
   * The customer of a browser in a place, made if the browser has none there yet. If the candidates belong to no browser, a
   * new browser with a new secret is made. The returned secret is that of the browser.
   *
   * A known customer costs one SELECT and, once a day, an UPDATE; a new one costs one INSERT.
   */
  async ofBrowser(candidates: CandidateCredentials | undefined, place: Place): Promise<Customer & BrowserCredentials> {
    const browser = candidates && (await this.browsers.recognise(candidates, place));
    if (!browser) return this.newBrowser(place);
    const customer = browser.customer ?? (await this.newIdentity(browser.browserId, place));
    return { ...customer, organizationId: place.organizationId, secret: browser.secret };
  }

  /** A new customer of a backend, whom no browser owns. */
  async create(organizationId: string): Promise<Customer> {
    this.limit();
    const now = this.clock.now();
    const entityId = uuidv7(now);
    await this.database.insert(`INSERT ${INSERT}`, [entityId, null, organizationId, '', null, null, new Date(now)]);
    this.tell('agent', entityId, organizationId);
    return { entityId, organizationId, generation: 0 };
  }

  /**
   * Makes a customer whose id its caller has written down first, where it is not made yet: an id of `uuidv7`, whom no
   * browser owns. Whoever calls for the same id, in parallel or again after an answer was lost, makes the same customer.
   *
   * @returns the customer; `undefined` when it was erased
   */
  async ensure(entityId: string, organizationId: string): Promise<Customer | undefined> {
    const known = await this.find(entityId, organizationId);
    if (known) return known;
    this.limit();
    const row = [entityId, null, organizationId, '', null, null, new Date(this.clock.now())];
    if ((await this.database.changeAgain(this.insertIfAbsent, row)) === 0) return this.find(entityId, organizationId);
    this.tell('organization', entityId, organizationId);
    return { entityId, organizationId, generation: 0 };
  }

  /** The customer that a browser has in a place, where it has one; nobody is made. */
  async known(candidates: CandidateCredentials | undefined, place: Place): Promise<string | undefined> {
    const browser = candidates && (await this.browsers.recognise(candidates, place));
    return browser?.customer?.entityId;
  }

  /** The customer of an organization with this id; `undefined` also for an erased one. */
  async find(entityId: string, organizationId: string): Promise<Customer | undefined> {
    const sql = 'SELECT generation FROM customer_identity WHERE entity_id = ? AND organization_id = ?';
    const [row] = await this.database.select<{ generation: number | null }>(sql, [entityId, organizationId]);
    return row && { entityId, organizationId, generation: row.generation ?? 0 };
  }

  /** The generation of a customer of any organization; `undefined` when it was erased, 0 for an id without a row. */
  async generationOf(entityId: string): Promise<number | undefined> {
    const sql = 'SELECT organization_id, generation FROM customer_identity WHERE entity_id = ?';
    const [row] = await this.database.select<{ organization_id: string | null; generation: number | null }>(sql, [
      entityId,
    ]);
    return row?.organization_id === null ? undefined : (row?.generation ?? 0);
  }

  private async newBrowser({ organizationId, groupId }: Place): Promise<Customer & BrowserCredentials> {
    this.limit();
    const now = this.clock.now();
    const entityId = uuidv7(now);
    const secret = randomSecret('hex');
    const row = [entityId, entityId, organizationId, groupId, sha256(secret), dayOf(now), new Date(now)];
    await this.database.insert(`INSERT ${INSERT}`, row);
    this.tell('browser', entityId, organizationId);
    return { entityId, organizationId, generation: 0, secret };
  }

  /** Of parallel first calls to a place one makes the identity, by the unique key; all get that one. */
  private async newIdentity(
    browserId: string,
    { organizationId, groupId }: Place,
  ): Promise<Omit<Customer, 'organizationId'>> {
    this.limit();
    const now = this.clock.now();
    const row = [uuidv7(now), browserId, organizationId, groupId, null, null, new Date(now)];
    const isNew = (await this.database.change(this.insertIfAbsent, row)) > 0;
    const parameters = [browserId, organizationId, groupId];
    const [made] = await this.database.select<{ entity_id: string; generation: number | null }>(OF_BROWSER, parameters);
    if (!made) throw new Error('an identity vanished while it was made');
    if (isNew) this.tell('browser', made.entity_id, organizationId);
    return { entityId: made.entity_id, generation: made.generation ?? 0 };
  }

  /** Before each INSERT: so many new customers of one network (contract, section 4). */
  private limit(): void {
    const request = requestContext.current();
    const wait = request ? this.limits.takeForAddress('identities', request.ip) : 0;
    if (wait > 0) throw OAuthError.rateLimited(wait, 'identities');
  }

  private tell(kind: 'browser' | 'agent' | 'organization', id: string, organizationId: string): void {
    const subject = { kind: 'customer', id } as const;
    this.audit.record({ event: 'identity.created', outcome: 'success', actor: { kind }, subject, organizationId });
  }
}
