import { Injectable } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { dayOf } from '../platform/day.js';
import { equalInConstantTime, randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import type { Customer } from './customer.js';
import { CustomerCreation } from './customer-creation.js';
import { DELETE_CUSTOMER, FIND_OF_BROWSER, FIND_SECRET, INSERT, INSERT_IF_ABSENT } from './customer-statements.js';
import type { BrowserCredentials, CandidateCredentials } from './identity-cookies.js';
import type { IdentityScope } from './identity-scope.js';
import { type KnownBrowser, KnownBrowsers } from './known-browsers.js';
import { credentialHash } from './link-credential.entity.js';
import {
  DELETE_CREDENTIAL,
  deleteUnusedAncestors,
  FIND_REDEMPTION,
  INSERT_CREDENTIAL,
  INSERT_LINK_IF_ABSENT,
  REPLACE_LINK,
} from './link-statements.js';

type BrowserCustomer = Customer & BrowserCredentials;

/** A request whose browser changes between its statements starts again this often. */
const MAX_ATTEMPTS = 5;

/** Finds and creates the customers of browsers (protocol §5.3 and §5.6). */
@Injectable()
export class BrowserCustomers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly creation: CustomerCreation,
    private readonly browsers: KnownBrowsers,
  ) {}

  async findOrCreate(candidates: CandidateCredentials | undefined, scope: IdentityScope): Promise<BrowserCustomer> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const browser = candidates && (await this.browsers.recognise(candidates, scope));
      if (!browser) return this.newBrowser(scope);
      const customer = browser.customer ?? (await this.newCustomer(browser, scope));
      if (!customer) continue;
      const { entityId, generation, lineage } = customer;
      return { entityId, ...scope, generation, secret: browser.secret, ...(lineage && { lineage }) };
    }
    throw OAuthError.unavailable(new Error('the browser changes all the time'));
  }

  private async newBrowser({ organizationId, groupId }: IdentityScope): Promise<BrowserCustomer> {
    this.creation.takeLimit();
    const now = this.clock.now();
    const [entityId, day] = [uuidv7(now), dayOf(now)];
    const secret = randomSecret('hex');
    const row = [entityId, entityId, organizationId, groupId, sha256(secret), day, day, new Date(now)] as const;
    await this.database.insert(INSERT, [...row]);
    this.creation.auditCreated('browser', entityId, organizationId);
    return { entityId, organizationId, groupId, generation: 0, secret };
  }

  /** Resolves to `undefined` if the browser has changed since it was recognised. */
  private newCustomer(
    browser: KnownBrowser,
    scope: IdentityScope,
  ): Promise<Pick<Customer, 'entityId' | 'generation' | 'lineage'> | undefined> {
    this.creation.takeLimit();
    return browser.ended ? this.newLinked(browser, browser.ended.linkedId, scope) : this.newOwn(browser, scope);
  }

  /** The unique key lets one of several parallel first calls create the identity. All of them return that identity. */
  private async newOwn({ browserId, secret }: KnownBrowser, { organizationId, groupId }: IdentityScope) {
    const now = this.clock.now();
    const row = [uuidv7(now), browserId, organizationId, groupId, null, null, dayOf(now), new Date(now)] as const;
    const inserted = await this.database.execute(INSERT_IF_ABSENT, [...row]);
    const [found] = await this.database.select(FIND_OF_BROWSER, [browserId, organizationId, groupId]);
    if (inserted > 0) this.creation.auditCreated('browser', found?.entity_id ?? row[0], organizationId);
    if (!found || !isSecret(secret, found.secret_hash)) return undefined;
    return { entityId: found.entity_id, generation: found.generation ?? 0 };
  }

  /**
   * Creates a customer for a scope whose own row or link has ended. The row stays, because it recognises the browser.
   * The primary key of the link, or the customer that it replaces, lets one of several parallel calls win. The others
   * delete their customers. The customer is inserted before the link: a link without a customer has ended, so another
   * call would replace it.
   */
  private async newLinked(
    { browserId, secret }: KnownBrowser,
    replacedId: string | null,
    { organizationId, groupId }: IdentityScope,
  ) {
    const now = this.clock.now();
    const [entityId, day] = [uuidv7(now), dayOf(now)];
    const credential = credentialHash(entityId, secret);
    await this.database.insert(INSERT_CREDENTIAL, [credential, browserId]);
    await this.database.insert(INSERT, [entityId, entityId, organizationId, groupId, null, null, day, new Date(now)]);
    const scope = [browserId, organizationId, groupId] as const;
    const replaced = replacedId === null ? [] : await this.database.select(FIND_REDEMPTION, [...scope, replacedId]);
    const linked =
      replacedId === null
        ? await this.database.execute(INSERT_LINK_IF_ABSENT, [...scope, entityId, 0, day, null, null, null, null])
        : await this.database.execute(REPLACE_LINK, [entityId, day, ...scope, replacedId]);
    if (linked === 0) {
      await this.database.executeIdempotent(DELETE_CUSTOMER, [entityId]);
      await this.database.executeIdempotent(DELETE_CREDENTIAL, [credential]);
      return undefined;
    }
    await deleteUnusedAncestors(this.database, replaced);
    this.creation.auditCreated('browser', entityId, organizationId);
    const [browser] = await this.database.select(FIND_SECRET, [browserId]);
    return isSecret(secret, browser?.secret_hash) ? { entityId, generation: 0 } : undefined;
  }
}

/** A browser may lose its secret while a customer is created for it (protocol §4.13). */
function isSecret(secret: string, hash: string | null | undefined): boolean {
  return equalInConstantTime(hash ?? '', sha256(secret));
}
