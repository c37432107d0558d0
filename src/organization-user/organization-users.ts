import { Injectable, Logger, ServiceUnavailableException } from '@nestjs/common';
import { Audit, party } from '../audit/audit.js';
import { BrowserCreation } from '../identity/browser-creation.js';
import type { RecognizedBrowser } from '../identity/browser-recognition.js';
import { CustomerBrowsers } from '../identity/customer-browsers.js';
import { CustomerCreation } from '../identity/customer-creation.js';
import { CustomerSessions } from '../identity/customer-sessions.js';
import { joinCustomer } from '../identity/customer-statements.js';
import { Identities } from '../identity/identities.js';
import { LastTokenDays } from '../identity/last-token-days.js';
import { type SignedInBrowser, UserSignIns } from '../identity/sign-in.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { type EntityRow, insertIgnoreStatement, selectStatement } from '../platform/database/statement.js';
import { sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { OrganizationUser } from './organization-user.entity.js';
import type { UserCustomer, UserRequest } from './user-request.js';

/** The row of a user with the generation of its customer, or the row of a visitor without one. */
type UserRow = EntityRow<OrganizationUser, 'entity_id' | 'user_hash' | 'linked_by'> & { generation: number | null };
type KnownUser = UserRow & { generation: number };

/** The erasure of a customer deletes the row of its user in its first transaction. */
const FIND_USER = selectStatement<[organizationId: string, userHash: string], UserRow>({
  columns: ['known.entity_id', 'known.user_hash', 'known.linked_by', 'customer.generation'],
  from: `organization_user known ${joinCustomer('known.entity_id')}
    WHERE known.organization_id = ? AND known.user_hash = ?`,
  batch: true,
});

const FIND_VISITOR = selectStatement<[visitorId: string], UserRow>(
  'SELECT entity_id, NULL AS user_hash, linked_by, NULL AS generation FROM organization_user WHERE entity_id = ?',
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
  /** The rows of the user and of the visitor. */
  rows: UserRow[];
  known: KnownUser | undefined;
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
    private readonly signIns: UserSignIns,
    private readonly browsers: BrowserCreation,
    private readonly sessions: CustomerSessions,
    private readonly links: CustomerBrowsers,
    private readonly creation: CustomerCreation,
    private readonly lastTokenDays: LastTokenDays,
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
    const takeLimit = this.creation.limitOfOne();
    const browser = signIn && (await this.signIns.find(signIn.credentials, organizationId));
    const visitorId = signIn?.link && browser?.customer?.origin === 'own' ? browser.customer.entityId : undefined;
    for (let attempt = 0; attempt < MAX_READ_ATTEMPTS; attempt++) {
      const rows = await this.rowsOf(organizationId, userHash, visitorId);
      const known = rows.find(isKnownUser);
      const read: ReadRequest = { request, userHash, browser, visitorId, rows, known };
      let stored: StoredUser | undefined;
      try {
        stored = known && !signIn ? storedUser(known) : await this.store(read, takeLimit);
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
    return row?.entity_id;
  }

  /** Whether a customer is a user's. @internal */
  async hasUser(entityId: string): Promise<boolean> {
    return (await this.database.select(FIND_USER_OF, [entityId])).length > 0;
  }

  private async rowsOf(organizationId: string, userHash: string, visitorId: string | undefined): Promise<UserRow[]> {
    const ofUser = await this.database.select(FIND_USER, [organizationId, userHash]);
    return visitorId === undefined ? ofUser : [...ofUser, ...(await this.database.select(FIND_VISITOR, [visitorId]))];
  }

  /**
   * Creates the user, links the visitor and signs the browser in. The transaction changes the rows of the customers
   * first, so that `forget`, `end_sessions` and an erasure at the same time precede it or follow it.
   *
   * @returns `undefined` if a parallel request has created the user, has linked the visitor or has erased the customer
   */
  private store(read: ReadRequest, takeLimit: () => void): Promise<StoredUser | undefined> {
    const { request, userHash, browser, rows, known } = read;
    const { organizationId, attempt, creator, signIn } = request;
    // the customer of another user is never linked or reassigned, because users may share a browser
    const freeId = rows.some(({ entity_id }) => entity_id === read.visitorId) ? undefined : read.visitorId;
    const newId = uuidv7(this.clock.now());
    return this.database.transaction(async (manager) => {
      const insert = async (entityId: string, hash: string | null, customerId: string) => {
        const row = [entityId, organizationId, hash, customerId, attempt, new Date(this.clock.now())] as const;
        return (await writeIn(manager, INSERT_USER, [...row])) > 0;
      };
      const customerIds = [known?.entity_id, freeId].filter((id) => id !== undefined).sort();
      for (const id of customerIds)
        if (!(await this.lastTokenDays.noteIn(manager, id)) && id === known?.entity_id) return undefined;
      const links = await this.signIns.linksOf(manager, browser, organizationId, known?.entity_id);
      const visitorId = links.leading.find((link) => link.entityId === freeId && link.origin === 'own')?.entityId;
      let linkedId: string | undefined;
      if (known) {
        if (visitorId && (await insert(visitorId, null, known.entity_id))) linkedId = visitorId;
      } else {
        const entityId = visitorId ?? newId;
        if (!(await insert(entityId, userHash, entityId))) return undefined;
        // otherwise a person who has kept a pair, a token or a device of the visitor would lead to the user's customer
        if (visitorId) await this.sessions.endIn(manager, entityId, true);
        else {
          if (!signIn) takeLimit();
          await this.identities.createIn(manager, entityId, organizationId, creator);
        }
      }
      const [user] = (await selectIn(manager, FIND_USER, [organizationId, userHash])).filter(isKnownUser);
      if (!user) return undefined;
      const stored = { ...storedUser(user), linkedId };
      const customer = { ...stored, organizationId };
      return signIn ? { ...stored, signedIn: await this.signIns.store(manager, browser, customer, links) } : stored;
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
    const { request, visitorId, rows, known } = read;
    const { organizationId, attempt, creator } = request;
    const created = !known || known.linked_by === attempt;
    const isLinked = rows.some((row) => row.entity_id === visitorId && row.linked_by === attempt);
    const auditedId = linkedId ?? (isLinked || entityId === visitorId ? visitorId : undefined);
    if (auditedId !== undefined && (created || auditedId !== entityId))
      this.auditLink(entityId, auditedId, organizationId);
    else if (created) this.creation.auditCreated(creator, entityId, organizationId);
    if (created && auditedId === entityId) await this.removeEndedLinks(entityId);
    const customer = { entityId, organizationId, groupId: '', generation, created };
    if (!signedIn) return customer;
    const { secret, createdId } = signedIn;
    if (createdId !== undefined) this.browsers.auditLinked(createdId, customer, { sign_in: attempt });
    return { ...customer, credentials: { entityId, secret } };
  }

  /** An outage is logged only: the sign-in is stored, and the links of the visitor lead nowhere already. */
  private async removeEndedLinks(entityId: string): Promise<void> {
    try {
      await this.links.endAll(entityId, true);
    } catch (error) {
      if (!(error instanceof ServiceUnavailableException)) throw error;
      this.logger.warn(`the ended links of customer ${entityId} are not removed: ${error.message}`);
    }
  }

  private auditLink(id: string, linked: string, organizationId: string): void {
    const more = { organizationId, details: { linked } };
    this.audit.success('identity.linked', party('customer'), party('customer', id), more);
  }
}

function isKnownUser(row: UserRow): row is KnownUser {
  return row.user_hash !== null;
}

function storedUser({ entity_id: entityId, generation }: KnownUser): StoredUser {
  return { entityId, generation };
}

function userHashOf(organizationId: string, userId: string): string {
  return sha256(JSON.stringify([organizationId, userId]));
}
