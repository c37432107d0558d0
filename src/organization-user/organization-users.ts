import { Injectable } from '@nestjs/common';
import { CustomerCreation } from '../identity/customer-creation.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import {
  DELETE_OWN,
  FIND_USER,
  FIND_USER_AND_BROWSER_CUSTOMER,
  INSERT_USER,
  SETTLE_USER,
  type UserRow,
} from './organization-user-statements.js';
import { UserLinks } from './user-links.js';
import type { UserCustomer, UserRequest } from './user-request.js';

/** A request starts again after a lost race or an erasure. Only several erasures at once reach this limit. */
const MAX_ATTEMPTS = 5;

/**
 * Finds or creates the customer of a user of an organization. The row of the user is inserted before the customer. So a
 * request that loses the race for the row, or that follows a crash, creates the customer with the same id.
 */
@Injectable()
export class OrganizationUsers {
  constructor(
    private readonly database: Database,
    private readonly identities: Identities,
    private readonly creation: CustomerCreation,
    private readonly links: UserLinks,
    private readonly clock: Clock,
  ) {}

  /**
   * The customer of a user. A known user costs one SELECT. A new user gets the browser's customer if it belongs to no
   * user yet, else a new customer.
   */
  async customerOf(request: UserRequest): Promise<UserCustomer> {
    const userHash = userHashOf(request.organizationId, request.userId);
    for (let turn = 0; turn < MAX_ATTEMPTS; turn++) {
      // if the browser's customer could not be claimed twice, it was erased
      const attempted = turn > 1 ? { ...request, browserCustomerId: undefined } : request;
      const rows = await this.rowsOf(attempted, userHash);
      const own = rows.find(({ user_hash }) => user_hash !== null);
      // JWT bearer grant: the customer of another user is never linked or reassigned, as users may share a browser
      const unlinkedId = rows.some(({ entity_id }) => entity_id === attempted.browserCustomerId)
        ? undefined
        : attempted.browserCustomerId;
      const customer = own
        ? await this.settle(own, attempted, userHash)
        : await this.createUser(unlinkedId, attempted, userHash);
      if (customer === undefined) continue;
      if (own && unlinkedId !== undefined && unlinkedId !== customer.entityId)
        await this.links.link(unlinkedId, customer.entityId, request.organizationId, request.attempt);
      return customer;
    }
    throw OAuthError.unavailable();
  }

  /** The `entity_id` of a user's customer; `undefined` if the user is unknown. */
  async find(organizationId: string, userId: string): Promise<string | undefined> {
    const [row] = await this.database.select(FIND_USER, [organizationId, userHashOf(organizationId, userId)]);
    return row?.entity_id;
  }

  private rowsOf({ organizationId, browserCustomerId }: UserRequest, userHash: string): Promise<UserRow[]> {
    return browserCustomerId === undefined
      ? this.database.select(FIND_USER, [organizationId, userHash])
      : this.database.select(FIND_USER_AND_BROWSER_CUSTOMER, [organizationId, userHash, browserCustomerId]);
  }

  /** Inserts the row of a new user; `undefined` if another request has inserted the user or claimed the customer. */
  private async createUser(
    unlinkedId: string | undefined,
    request: UserRequest,
    userHash: string,
  ): Promise<UserCustomer | undefined> {
    const { organizationId, attempt } = request;
    // before the row of the user, so that requests beyond the limit insert nothing
    if (unlinkedId === undefined) this.creation.takeLimit();
    const now = this.clock.now();
    const entityId = unlinkedId ?? uuidv7(now);
    const changed = await this.database.executeIdempotent(INSERT_USER, [
      entityId,
      organizationId,
      userHash,
      entityId,
      attempt,
      new Date(now),
    ]);
    if (changed === 0) return undefined;
    const inserted = {
      entity_id: entityId,
      user_hash: userHash,
      linked_by: attempt,
      settled_at: null,
      generation: null,
      is_erased: 0,
    };
    return this.settle(inserted, request, userHash);
  }

  /** Creates the customer of a user's row if it does not exist; `undefined` if the customer was erased. */
  private async settle(row: UserRow, request: UserRequest, userHash: string): Promise<UserCustomer | undefined> {
    const { organizationId, browserCustomerId, attempt, creator } = request;
    const { entity_id: entityId, linked_by, settled_at } = row;
    const isErased = row.is_erased !== 0;
    if (settled_at !== null && !isErased) return settledCustomer(row, organizationId);
    const isLimitTaken = linked_by === attempt;
    const customer = isErased
      ? undefined
      : await this.identities.createIfAbsent(entityId, organizationId, { creator, isLimitTaken });
    if (!customer) {
      await this.database.executeIdempotent(DELETE_OWN, [entityId, linked_by]);
      return undefined;
    }
    const now = new Date(this.clock.now());
    const created =
      (await this.database.executeIdempotent(SETTLE_USER, [now, attempt, entityId, userHash, attempt])) > 0;
    if (!created && !(await this.isSettled(entityId, organizationId, userHash))) return undefined;
    if (linked_by === attempt && entityId === browserCustomerId)
      this.links.auditLink(entityId, entityId, organizationId);
    return { ...customer, created };
  }

  /** Whether another request has settled the user. Otherwise an erasure has deleted the row. */
  private async isSettled(entityId: string, organizationId: string, userHash: string): Promise<boolean> {
    const [row] = await this.database.select(FIND_USER, [organizationId, userHash]);
    return row?.entity_id === entityId && row.settled_at !== null;
  }
}

function userHashOf(organizationId: string, userId: string): string {
  return sha256(JSON.stringify([organizationId, userId]));
}

/** The customers of users belong to no group. */
function settledCustomer({ entity_id: entityId, generation }: UserRow, organizationId: string): UserCustomer {
  return { entityId, organizationId, groupId: '', generation: generation ?? 0, created: false };
}
