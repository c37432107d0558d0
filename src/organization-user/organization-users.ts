import { Injectable, ServiceUnavailableException } from '@nestjs/common';
import { LastTokenDays } from '../access-token/last-token-days.js';
import { Audit } from '../audit/audit.js';
import { CustomerCreation } from '../identity/customer-creation.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { insertIgnoreStatement, selectStatement, writeStatement } from '../platform/database/statement.js';
import { sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { OrganizationUser } from './organization-user.entity.js';
import type { UserCustomer, UserRequest } from './user-request.js';

/** A row of a user, with the generation of its customer. */
interface UserRow extends EntityRow<OrganizationUser, 'entity_id' | 'user_hash' | 'linked_by'> {
  /** `null` if the customer was erased. Its erasure deletes the row of the user afterwards. */
  generation: number | null;
}

const USER_ROWS = {
  columns: ['known.entity_id', 'known.user_hash', 'known.linked_by', 'customer.generation'],
  from: `organization_user known
    LEFT JOIN customer ON customer.entity_id = known.entity_id AND customer.erased_at IS NULL
    WHERE known.organization_id = ? AND known.user_hash = ?`,
};

const FIND_USER = selectStatement<[organizationId: string, userHash: string], UserRow>({
  ...USER_ROWS,
  batch: true,
});

const FIND_USER_AND_BROWSER_CUSTOMER = selectStatement<
  [organizationId: string, userHash: string, browserCustomerId: string],
  UserRow
>(
  `SELECT ${USER_ROWS.columns.join(', ')} FROM ${USER_ROWS.from} UNION ALL
    SELECT entity_id, NULL, linked_by, NULL FROM organization_user WHERE entity_id = ?`,
);

const INSERT_USER = insertIgnoreStatement({
  into: OrganizationUser,
  columns: ['entity_id', 'organization_id', 'user_hash', 'customer_id', 'linked_by', 'linked_at'],
});

/** Deletes the row of a user whose customer was erased, if the erasure has not done so yet. */
const DELETE_USER = writeStatement<[entityId: string, userHash: string]>(
  'DELETE FROM organization_user WHERE entity_id = ? AND user_hash = ?',
);

/** A request reads again after a parallel request has created the user. Only several erasures at once reach this limit. */
const MAX_READ_ATTEMPTS = 3;

/** Finds or creates the customer of a user of an organization, in one transaction with the row of the user. */
@Injectable()
export class OrganizationUsers {
  constructor(
    private readonly database: Database,
    private readonly identities: Identities,
    private readonly creation: CustomerCreation,
    private readonly lastTokenDays: LastTokenDays,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /**
   * The customer of a user. A known user costs one SELECT, unless a customer of the browser is linked. A new user gets the browser's customer if it belongs to no
   * user yet, else a new customer.
   */
  async customerOf(request: UserRequest): Promise<UserCustomer> {
    const { organizationId, browserCustomerId } = request;
    const userHash = userHashOf(organizationId, request.userId);
    const takeLimit = this.creation.limitOfOne();
    for (let read = 0; read < MAX_READ_ATTEMPTS; read++) {
      const rows = await this.rowsOf(request, userHash);
      // the customer of another user is never linked or reassigned, because users may share a browser
      const unlinkedId = rows.some(({ entity_id }) => entity_id === browserCustomerId) ? undefined : browserCustomerId;
      const own = rows.find(({ user_hash }) => user_hash !== null);
      try {
        const customer =
          own && own.generation !== null
            ? await this.known(own, own.generation, request, unlinkedId, rows)
            : await this.create(request, userHash, unlinkedId, own, takeLimit);
        if (customer) return customer;
      } catch (error) {
        // the response to the commit may be lost: the rows decide, which have the id of this attempt
        if (!(error instanceof ServiceUnavailableException) || read === MAX_READ_ATTEMPTS - 1) throw error;
      }
    }
    throw OAuthError.unavailable();
  }

  private async known(
    { entity_id: entityId, linked_by }: UserRow,
    generation: number,
    request: UserRequest,
    unlinkedId: string | undefined,
    rows: UserRow[],
  ): Promise<UserCustomer> {
    const { organizationId, attempt, browserCustomerId } = request;
    if (unlinkedId !== undefined) await this.link(unlinkedId, entityId, request);
    else if (browserCustomerId !== undefined && browserCustomerId !== entityId) {
      // the response to the commit of this attempt was lost
      const isLinked = rows.some((row) => row.entity_id === browserCustomerId && row.linked_by === attempt);
      if (isLinked) this.auditLink(entityId, browserCustomerId, organizationId);
    }
    const created = linked_by === attempt;
    if (created) this.auditNew(entityId, request);
    return { entityId, organizationId, groupId: '', generation, created };
  }

  /** The `entity_id` of a user's customer; `undefined` if the user is unknown or the customer was erased. */
  async find(organizationId: string, userId: string): Promise<string | undefined> {
    const [row] = await this.database.select(FIND_USER, [organizationId, userHashOf(organizationId, userId)]);
    return row?.generation == null ? undefined : row.entity_id;
  }

  private rowsOf({ organizationId, browserCustomerId }: UserRequest, userHash: string): Promise<UserRow[]> {
    return browserCustomerId === undefined
      ? this.database.select(FIND_USER, [organizationId, userHash])
      : this.database.select(FIND_USER_AND_BROWSER_CUSTOMER, [organizationId, userHash, browserCustomerId]);
  }

  /** @returns `undefined` if a parallel request has created the user or claimed the browser's customer */
  private async create(
    request: UserRequest,
    userHash: string,
    unlinkedId: string | undefined,
    erased: UserRow | undefined,
    takeLimit: () => void,
  ): Promise<UserCustomer | undefined> {
    const { organizationId, attempt, creator } = request;
    const newId = uuidv7(this.clock.now());
    const created = await this.database.transaction(async (manager) => {
      if (erased) await writeIn(manager, DELETE_USER, [erased.entity_id, userHash]);
      // the customer of the browser may have been erased since it was read
      const isClaimed = unlinkedId !== undefined && (await this.lastTokenDays.noteIn(manager, unlinkedId));
      const entityId = isClaimed ? unlinkedId : newId;
      const row = [entityId, organizationId, userHash, entityId, attempt, new Date(this.clock.now())] as const;
      if ((await writeIn(manager, INSERT_USER, [...row])) === 0) return undefined;
      if (!isClaimed) {
        takeLimit();
        await this.identities.createIn(manager, entityId, organizationId, creator);
      }
      const [user] = await selectIn(manager, FIND_USER, [organizationId, userHash]);
      return { entityId, generation: user?.generation ?? 0 };
    });
    if (!created) return undefined;
    const { entityId, generation } = created;
    this.auditNew(entityId, request);
    return { entityId, organizationId, groupId: '', generation, created: true };
  }

  /** Links a customer of a browser to the customer of a user (protocol §4.7), unless one of them was erased. */
  private async link(linkedId: string, customerId: string, { organizationId, attempt }: UserRequest): Promise<void> {
    const isLinked = await this.database.transaction(async (manager) => {
      for (const id of [linkedId, customerId].sort()) if (!(await this.lastTokenDays.noteIn(manager, id))) return false;
      const row = [linkedId, organizationId, null, customerId, attempt, new Date(this.clock.now())] as const;
      return (await writeIn(manager, INSERT_USER, [...row])) > 0;
    });
    if (isLinked) this.auditLink(customerId, linkedId, organizationId);
  }

  private auditNew(entityId: string, { organizationId, creator, browserCustomerId }: UserRequest): void {
    if (entityId === browserCustomerId) this.auditLink(entityId, entityId, organizationId);
    else this.creation.auditCreated(creator, entityId, organizationId);
  }

  private auditLink(id: string, linked: string, organizationId: string): void {
    const subject = { kind: 'customer', id } as const;
    const actor = { kind: 'customer' } as const;
    const details = { linked };
    this.audit.record({ event: 'identity.linked', outcome: 'success', actor, subject, organizationId, details });
  }
}

function userHashOf(organizationId: string, userId: string): string {
  return sha256(JSON.stringify([organizationId, userId]));
}
