import { Injectable } from '@nestjs/common';
import { Audit, Clock, type Customer, Database, Identities, OAuthError, sha256, uuidv7 } from '../../public/grant.js';
import {
  DELETE_OWN,
  FIND_OWN,
  FIND_USER,
  FIND_USER_AND_BROWSER_CUSTOMER,
  INSERT_LINK,
  INSERT_USER,
  SETTLE_USER,
  type UserRow,
} from './organization-user-statements.js';

/** A user of an organization who signs in. */
export interface SignIn {
  organizationId: string;
  /** The organization's id of the user, byte for byte. */
  userId: string;
  /** The customer of the identity cookies, if the request asks to link it. */
  browserCustomerId: string | undefined;
  /** Identifies the request, so that it recognizes its own write after a lost response of the database. */
  attempt: string;
}

/** A sign-in starts again after a lost race or an erasure. Only several erasures at once reach this limit. */
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
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /**
   * The customer of a user. A known user costs one SELECT. A new user gets the browser's customer if it belongs to no
   * user yet, else a new customer.
   */
  async customerOf(request: SignIn): Promise<Customer> {
    const userHash = sha256(JSON.stringify([request.organizationId, request.userId]));
    for (let turn = 0; turn < MAX_ATTEMPTS; turn++) {
      // if the browser's customer could not be claimed twice, it was erased
      const signIn = turn > 1 ? { ...request, browserCustomerId: undefined } : request;
      const rows = await this.rowsOf(signIn, userHash);
      const own = rows.find(({ user_hash }) => user_hash !== null);
      // the customer of another user is never linked or reassigned: several users can sign in with one browser
      const unlinkedId = rows.some(({ entity_id }) => entity_id === signIn.browserCustomerId)
        ? undefined
        : signIn.browserCustomerId;
      const customer = own
        ? await this.settle(own, signIn, userHash)
        : await this.createUser(unlinkedId, signIn, userHash);
      if (customer === undefined) continue;
      if (own && unlinkedId !== undefined && unlinkedId !== customer.entityId)
        await this.link(unlinkedId, customer.entityId, signIn);
      return customer;
    }
    throw OAuthError.unavailable();
  }

  private rowsOf({ organizationId, browserCustomerId }: SignIn, userHash: string): Promise<UserRow[]> {
    return browserCustomerId === undefined
      ? this.database.select(FIND_USER, [organizationId, userHash])
      : this.database.select(FIND_USER_AND_BROWSER_CUSTOMER, [organizationId, userHash, browserCustomerId]);
  }

  /** Inserts the row of a new user; `undefined` if another request has inserted the user or claimed the customer. */
  private async createUser(
    unlinkedId: string | undefined,
    signIn: SignIn,
    userHash: string,
  ): Promise<Customer | undefined> {
    const { organizationId, attempt } = signIn;
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
    };
    return this.settle(inserted, signIn, userHash);
  }

  /** Creates the customer of a user's row if it does not exist; `undefined` if the customer was erased. */
  private async settle(
    row: UserRow,
    { organizationId, browserCustomerId, attempt }: SignIn,
    userHash: string,
  ): Promise<Customer | undefined> {
    const { entity_id: entityId, linked_by, settled_at, generation } = row;
    if (settled_at !== null) return { entityId, organizationId, generation: generation ?? 0 };
    const customer = await this.identities.createIfAbsent(entityId, organizationId);
    if (!customer) {
      await this.database.executeIdempotent(DELETE_OWN, [entityId, linked_by]);
      return undefined;
    }
    const now = new Date(this.clock.now());
    if ((await this.database.executeIdempotent(SETTLE_USER, [now, entityId, userHash])) === 0) return undefined;
    if (linked_by === attempt && entityId === browserCustomerId) this.auditLink(entityId, entityId, organizationId);
    return customer;
  }

  /** Links the customer of a browser to the customer of the user. */
  private async link(linkedId: string, customerId: string, { organizationId, attempt }: SignIn): Promise<void> {
    const now = new Date(this.clock.now());
    const changed = await this.database.executeIdempotent(INSERT_LINK, [
      linkedId,
      organizationId,
      customerId,
      attempt,
      now,
      now,
    ]);
    if (changed === 0 && !(await this.isLinkedBy(attempt, linkedId))) return;
    const exists = async (entityId: string) => (await this.identities.find(entityId, organizationId)) !== undefined;
    if ((await exists(linkedId)) && (await exists(customerId)))
      return this.auditLink(customerId, linkedId, organizationId);
    // one of them was erased before the link existed, so its erasure did not delete the link
    await this.database.executeIdempotent(DELETE_OWN, [linkedId, attempt]);
  }

  private async isLinkedBy(attempt: string, entityId: string): Promise<boolean> {
    return (await this.database.select(FIND_OWN, [entityId, attempt])).length > 0;
  }

  private auditLink(id: string, linked: string, organizationId: string): void {
    const subject = { kind: 'customer', id } as const;
    const actor = { kind: 'customer' } as const;
    const details = { linked };
    this.audit.record({ event: 'identity.linked', outcome: 'success', actor, subject, organizationId, details });
  }
}
