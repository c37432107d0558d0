import { Injectable } from '@nestjs/common';
import {
  Audit,
  Clock,
  type Customer,
  Database,
  type EntityRow,
  Identities,
  insertIgnoreStatement,
  OAuthError,
  selectStatement,
  sha256,
  uuidv7,
  writeStatement,
} from '../../public/grant.js';
import { OrganizationUser } from './organization-user.entity.js';

/** A user of an organization who signs in. */
export interface SignIn {
  organizationId: string;
  /** The organization's own id of the user, byte for byte. */
  userId: string;
  /** The customer whom the browser's cookies show, where it is to be linked. */
  shown: string | undefined;
  /** Which request this is: by it a change whose answer was lost is known as its own. */
  attempt: string;
}

interface Row extends EntityRow<OrganizationUser, 'entity_id' | 'user_hash' | 'linked_by' | 'settled_at'> {
  /** Of the customer. */
  generation: number | null;
}

const OF_USER = {
  columns: ['known.entity_id', 'known.user_hash', 'known.linked_by', 'known.settled_at', 'customer.generation'],
  from: `organization_user known LEFT JOIN customer_identity customer ON customer.entity_id = known.entity_id
    WHERE known.organization_id = ? AND known.user_hash = ?`,
};

const FIND = selectStatement<[organizationId: string, userHash: string], Row>({ ...OF_USER, batch: true });

const FIND_OR_SHOWN = selectStatement<[organizationId: string, userHash: string, shown: string], Row>(
  `SELECT ${OF_USER.columns.join(', ')} FROM ${OF_USER.from} UNION ALL
    SELECT entity_id, NULL, linked_by, settled_at, NULL FROM organization_user WHERE entity_id = ?`,
);

const INSERT = insertIgnoreStatement({
  into: OrganizationUser,
  columns: ['entity_id', 'organization_id', 'user_hash', 'customer_id', 'linked_by', 'linked_at'],
});

const INSERT_LINK = insertIgnoreStatement({
  into: OrganizationUser,
  columns: ['entity_id', 'organization_id', 'customer_id', 'linked_by', 'linked_at', 'settled_at'],
});

const SETTLE = writeStatement<[now: Date, entityId: string, userHash: string]>(
  'UPDATE organization_user SET settled_at = COALESCE(settled_at, ?) WHERE entity_id = ? AND user_hash = ?',
);

const DELETE_OWN = writeStatement<[entityId: string, attempt: string]>(
  'DELETE FROM organization_user WHERE entity_id = ? AND linked_by = ?',
);

const FIND_OWN = selectStatement<[entityId: string, attempt: string], unknown>({
  columns: ['1'],
  from: 'organization_user WHERE entity_id = ? AND linked_by = ?',
  batch: true,
});

/** Turns until a sign-in has met its own end state; each further one needs another erasure at the same moment. */
const MAX_ATTEMPTS = 5;

/**
 * Which customer a user of an organization is. The row comes first and the customer after it, so that whoever loses the race
 * for the row, or finds what a dead process has left, makes the very same customer.
 */
@Injectable()
export class OrganizationUsers {
  constructor(
    private readonly database: Database,
    private readonly identities: Identities,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /** The user's customer. Of a known user one SELECT; a new user's is made, or is the one shown, if it is nobody's yet. */
  async customerOf(asked: SignIn): Promise<Customer> {
    const userHash = sha256(JSON.stringify([asked.organizationId, asked.userId]));
    for (let turn = 0; turn < MAX_ATTEMPTS; turn++) {
      // one who is not to be had, even when nobody raced for it, was erased
      const signIn = turn > 1 ? { ...asked, shown: undefined } : asked;
      const rows = await this.rowsOf(signIn, userHash);
      const own = rows.find(({ user_hash }) => user_hash !== null);
      // a customer that belongs to somebody is never taken: many sign in at one computer
      const free = rows.some(({ entity_id }) => entity_id === signIn.shown) ? undefined : signIn.shown;
      const customer = own ? await this.settled(own, signIn, userHash) : await this.begin(free, signIn, userHash);
      if (customer === undefined) continue;
      if (own && free !== undefined && free !== customer.entityId) await this.link(free, customer.entityId, signIn);
      return customer;
    }
    throw OAuthError.unavailable();
  }

  private rowsOf({ organizationId, shown }: SignIn, userHash: string): Promise<Row[]> {
    return shown === undefined
      ? this.database.select(FIND, [organizationId, userHash])
      : this.database.select(FIND_OR_SHOWN, [organizationId, userHash, shown]);
  }

  /** The first sign-in of a user, which may lose to another one, and of a customer, which may just have become another's. */
  private async begin(free: string | undefined, signIn: SignIn, userHash: string): Promise<Customer | undefined> {
    const { organizationId, attempt } = signIn;
    const now = this.clock.now();
    const entityId = free ?? uuidv7(now);
    const changed = await this.database.executeIdempotent(INSERT, [
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
    return this.settled(inserted, signIn, userHash);
  }

  /** The customer of a user's row, once it is known to be there; `undefined` when it was erased. */
  private async settled(
    row: Row,
    { organizationId, shown, attempt }: SignIn,
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
    if ((await this.database.executeIdempotent(SETTLE, [now, entityId, userHash])) === 0) return undefined;
    if (linked_by === attempt && entityId === shown) this.tell(entityId, entityId, organizationId);
    return customer;
  }

  /** The customer that a browser was before is from now on remembered with its user's. */
  private async link(shown: string, customer: string, { organizationId, attempt }: SignIn): Promise<void> {
    const now = new Date(this.clock.now());
    const changed = await this.database.executeIdempotent(INSERT_LINK, [
      shown,
      organizationId,
      customer,
      attempt,
      now,
      now,
    ]);
    if (changed === 0 && !(await this.isLinkedBy(attempt, shown))) return;
    const isThere = async (entityId: string) => (await this.identities.find(entityId, organizationId)) !== undefined;
    if ((await isThere(shown)) && (await isThere(customer))) return this.tell(customer, shown, organizationId);
    // one was erased before it could forget the other
    await this.database.executeIdempotent(DELETE_OWN, [shown, attempt]);
  }

  private async isLinkedBy(attempt: string, entityId: string): Promise<boolean> {
    return (await this.database.select(FIND_OWN, [entityId, attempt])).length > 0;
  }

  private tell(id: string, linked: string, organizationId: string): void {
    const subject = { kind: 'customer', id } as const;
    const actor = { kind: 'customer' } as const;
    this.audit.record({
      event: 'identity.linked',
      outcome: 'success',
      actor,
      subject,
      organizationId,
      details: { linked },
    });
  }
}
