import { Injectable, Logger, ServiceUnavailableException } from '@nestjs/common';
import { Audit, party } from '../audit/audit.js';
import { BrowserRecognition, type RecognizedBrowser } from '../identity/browser-recognition.js';
import { type Customer, type CustomerCreator, scopeOf } from '../identity/customer.js';
import { CustomerBrowsers } from '../identity/customer-browsers.js';
import { CustomerSessions } from '../identity/customer-sessions.js';
import { INSERT_CUSTOMER, joinCustomer, newCustomerRow } from '../identity/customer-statements.js';
import { Identities } from '../identity/identities.js';
import type { BrowserCredentials, CandidateCredentials } from '../identity/identity-cookies.js';
import { LinkLifetime } from '../identity/link-lifetime.js';
import { auditLinked, linksAtSignIn, newBrowser, type SignedInBrowser, storeSignIn } from '../identity/new-browsers.js';
import { NewCustomers } from '../identity/new-customers.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { type EntityRow, insertIgnoreStatement, selectStatement } from '../platform/database/statement.js';
import { sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { OrganizationUser } from './organization-user.entity.js';

/** The browser that signs a user in (protocol §5.6). */
export interface UserSignIn {
  /** The identity cookies of the request. */
  credentials: CandidateCredentials | undefined;
  /** Whether the customer that the browser created itself becomes a new user's, or is linked to a known user. */
  link: boolean;
}

/** A request for the customer of a user of an organization. */
export interface UserRequest {
  organizationId: string;
  /** The organization's id of the user, byte for byte. */
  userId: string;
  /** Only if the browser is to lead to the customer. The limit of new customers then does not count. */
  signIn?: UserSignIn | undefined;
  /** Identifies the request, so that it recognizes its own write after a lost response of the database. */
  attempt: string;
  /** The creator of the customer in the audit event. */
  creator: CustomerCreator;
}

/** The customer of a user. */
export interface UserCustomer extends Customer {
  /** Whether this request created the user. Of parallel requests one did. */
  created: boolean;
  /** The values of the identity cookies after a sign-in. */
  credentials?: BrowserCredentials;
}

/** The row of a user with the generation of its customer. */
type UserRow = Pick<OrganizationUser, 'entityId' | 'linkedBy'> & { generation: number };

/** The erasure of a customer deletes the row of its user in its first transaction. */
const FIND_USER = selectStatement<[organizationId: string, userHash: string], UserRow>({
  columns: ['known.entity_id AS entityId', 'known.linked_by AS linkedBy', 'customer.generation'],
  from: `organization_user known ${joinCustomer('known.entity_id')}
    WHERE known.organization_id = ? AND known.user_hash = ?`,
  batch: true,
});

const FIND_LINKED_BY = selectStatement<[visitorId: string], EntityRow<OrganizationUser, 'linked_by'>>(
  'SELECT linked_by FROM organization_user WHERE entity_id = ?',
);

const INSERT_USER = insertIgnoreStatement({
  into: OrganizationUser,
  columns: ['entity_id', 'organization_id', 'user_hash', 'customer_id', 'linked_by', 'linked_at'],
});

/** Whether a customer is the one whom a user's tokens are for. */
const FIND_USER_OF = selectStatement<[entityId: string], unknown>(
  'SELECT 1 FROM organization_user WHERE entity_id = ? AND user_hash IS NOT NULL',
);

/** A request reads again after a parallel request has created the user. Only several erasures at once reach this limit. */
const MAX_READ_ATTEMPTS = 3;

/** A request, and what was read for it. */
interface ReadRequest {
  request: UserRequest;
  userHash: string;
  /** The browser that signs the user in. */
  browser: RecognizedBrowser | undefined;
  /** The customer that this browser created itself, if the request asks to link it. */
  visitorId: string | undefined;
  known: UserRow | undefined;
  /** The request that linked the visitor to a user, if one did. */
  visitorLinkedBy: string | undefined;
}

interface StoredUser {
  entityId: string;
  generation: number;
  /** The visitor, if it was linked to a known user. */
  linkedId?: string | undefined;
  signedIn?: SignedInBrowser | undefined;
}

/** Finds or creates the customer of a user of an organization, in one transaction with the row of the user. */
@Injectable()
export class OrganizationUsers {
  private readonly logger = new Logger(OrganizationUsers.name);

  constructor(
    private readonly database: Database,
    private readonly identities: Identities,
    private readonly recognition: BrowserRecognition,
    private readonly lifetime: LinkLifetime,
    private readonly sessions: CustomerSessions,
    private readonly browsers: CustomerBrowsers,
    private readonly newCustomers: NewCustomers,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /**
   * The customer of a user. A known user costs one SELECT, unless the request signs a browser in. A new user gets the
   * browser's customer if the request links it and it belongs to no user yet, else a new customer.
   */
  async customerOf(request: UserRequest): Promise<UserCustomer> {
    const { organizationId, signIn } = request;
    const userHash = userHashOf(organizationId, request.userId);
    const takeLimit = this.newCustomers.limitOnce();
    const browser = signIn && (await this.recognition.find(signIn.credentials, scopeOf(organizationId)));
    const visitorId = signIn?.link && browser?.customer?.origin === 'own' ? browser.customer.entityId : undefined;
    for (let attempt = 0; attempt < MAX_READ_ATTEMPTS; attempt++) {
      const [known] = await this.database.select(FIND_USER, [organizationId, userHash]);
      const [linked] = visitorId === undefined ? [] : await this.database.select(FIND_LINKED_BY, [visitorId]);
      const read = { request, userHash, browser, visitorId, known, visitorLinkedBy: linked?.linked_by };
      let stored: StoredUser | undefined;
      try {
        stored = known && !signIn ? known : await this.store(read, takeLimit);
      } catch (error) {
        // the response to the commit may be lost: the rows decide, which have the id of this request
        if (!(error instanceof ServiceUnavailableException) || attempt === MAX_READ_ATTEMPTS - 1) throw error;
      }
      if (stored) return this.finish(read, stored);
    }
    throw OAuthError.unavailable();
  }

  /** The `entity_id` of a user's customer; `undefined` if the user is unknown. */
  async find(organizationId: string, userId: string): Promise<string | undefined> {
    const [row] = await this.database.select(FIND_USER, [organizationId, userHashOf(organizationId, userId)]);
    return row?.entityId;
  }

  /** Whether a customer is a user's. @internal */
  async hasUser(entityId: string): Promise<boolean> {
    return (await this.database.select(FIND_USER_OF, [entityId])).length > 0;
  }

  /**
   * Creates the user, links the visitor and signs the browser in. The transaction changes the rows of the customers
   * first, so that `forget`, `end_sessions` and an erasure at the same time precede it or follow it.
   *
   * @returns `undefined` if a parallel request has created the user, has linked the visitor or has erased the customer
   */
  private store(read: ReadRequest, takeLimit: () => void): Promise<StoredUser | undefined> {
    const { request, userHash, known } = read;
    const { organizationId, attempt, creator, signIn } = request;
    // the customer of another user is never linked or reassigned, because users may share a browser
    const freeId = read.visitorLinkedBy === undefined ? read.visitorId : undefined;
    const now = this.clock.now();
    const newId = uuidv7(now);
    const browser = newBrowser(read.browser, now);
    const signedInUntil = this.lifetime.signedInUntil(organizationId, browser.today);
    return this.database.transaction(async (manager) => {
      const insert = async (entityId: string, hash: string | null, customerId: string) => {
        const row = [entityId, organizationId, hash, customerId, attempt, new Date(now)] as const;
        return (await writeIn(manager, INSERT_USER, [...row])) > 0;
      };
      const customerIds = [known?.entityId, freeId].filter((id) => id !== undefined).sort();
      for (const id of customerIds)
        if (!(await this.identities.noteTokenIn(manager, id)) && id === known?.entityId) return undefined;
      const links = await linksAtSignIn(manager, browser, organizationId, known?.entityId);
      const visitorId = links.leading.find((link) => link.entityId === freeId && link.origin === 'own')?.entityId;
      let linkedId: string | undefined;
      if (known) {
        if (visitorId && (await insert(visitorId, null, known.entityId))) linkedId = visitorId;
      } else {
        const entityId = visitorId ?? newId;
        if (!(await insert(entityId, userHash, entityId))) return undefined;
        // otherwise a person who has kept a pair, a token or a device of the visitor would lead to the user's customer
        if (visitorId) await this.sessions.endIn(manager, entityId, true);
        else {
          if (!signIn) takeLimit();
          const row = newCustomerRow(entityId, scopeOf(organizationId), creator, now);
          await writeIn(manager, INSERT_CUSTOMER, row);
        }
      }
      const [user] = await selectIn(manager, FIND_USER, [organizationId, userHash]);
      if (!user) return undefined;
      const { entityId, generation } = user;
      const stored = { entityId, generation, linkedId };
      if (!signIn) return stored;
      const customer = { ...stored, organizationId };
      return { ...stored, signedIn: await storeSignIn(manager, browser, customer, links, signedInUntil) };
    });
  }

  /**
   * Audits what the request has stored, also in an earlier transaction the response to whose commit was lost. The links
   * of a visitor whose customer became the user's have ended; their browsers lose their secrets as by `end_sessions`.
   */
  private async finish(
    read: ReadRequest,
    { entityId, generation, linkedId, signedIn }: StoredUser,
  ): Promise<UserCustomer> {
    const { request, visitorId, visitorLinkedBy, known } = read;
    const { organizationId, attempt, creator } = request;
    const created = !known || known.linkedBy === attempt;
    const auditedId = linkedId ?? (visitorLinkedBy === attempt || entityId === visitorId ? visitorId : undefined);
    if (auditedId !== undefined && (created || auditedId !== entityId))
      this.audit.success('identity.linked', party('customer'), party('customer', entityId), {
        organizationId,
        details: { linked: auditedId },
      });
    else if (created) this.newCustomers.auditCreated(creator, entityId, organizationId);
    if (created && auditedId === entityId) await this.removeEndedLinks(entityId);
    const customer = { entityId, organizationId, groupId: '', generation, created };
    if (!signedIn) return customer;
    const { cookie: secret, createdId } = signedIn;
    if (createdId !== undefined) auditLinked(this.audit, createdId, customer, { sign_in: attempt });
    return { ...customer, credentials: { entityId, secret } };
  }

  /** An outage is logged only: the sign-in is stored, and the links of the visitor lead nowhere already. */
  private async removeEndedLinks(entityId: string): Promise<void> {
    try {
      await this.browsers.endAll([entityId], true);
    } catch (error) {
      if (!(error instanceof ServiceUnavailableException)) throw error;
      this.logger.warn(`the ended links of customer ${entityId} are not removed: ${error.message}`);
    }
  }
}

function userHashOf(organizationId: string, userId: string): string {
  return sha256(JSON.stringify([organizationId, userId]));
}
