import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Denylist } from '../access-token/denylist.js';
import type { RevocableClaims } from '../access-token/token-lineage.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { timeOf, withIsoTimes } from '../platform/database/sql-time.js';
import { type SelectStatement, selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { CONTENT_COLUMNS, claimsOfFamily } from './family-content.js';
import type { RefreshFamily } from './refresh-family.entity.js';

/** A refresh family that leads to a customer. Times are in milliseconds since 1970. */
export interface CustomerFamily {
  id: string;
  clientId: string;
  root: string | null;
  begunAt: number;
  lastUsedAt: number;
  expiresAt: number;
  /** The claims with which the family ends. */
  claims: RevocableClaims;
}

const COLUMNS = [...CONTENT_COLUMNS, 'root', 'rotated_at', 'expires_at'] as const;
type UsableRow = EntityRow<RefreshFamily, (typeof COLUMNS)[number]>;

const FIND_USABLE = selectStatement<[customerId: string, now: Date], UsableRow>(
  `SELECT ${COLUMNS.join(', ')} FROM refresh_family
    WHERE customer_id = ? AND ended_at IS NULL AND expires_at > ? ORDER BY rotated_at DESC, id`,
);

/** The number of families that one statement reads or deletes. */
const FAMILIES_PER_STATEMENT = 500;

const FIND_SOME = selectStatement<[customerId: string], { id: string }>(
  `SELECT id FROM refresh_family WHERE customer_id = ? LIMIT ${FAMILIES_PER_STATEMENT}`,
);

/** Without the hashes of refresh tokens. */
const FIND_STORED = selectStatement<
  [customerId: string],
  EntityRow<RefreshFamily, 'begun_at' | 'rotated_at' | 'ended_at' | 'expires_at'>
>(
  `SELECT id, client_id, customer_id, organization_id, scope, lineage, root, generation, begun_at, rotated_at,
      rotated_network, rotated_hour, rotations, ended_at, expires_at
    FROM refresh_family WHERE customer_id = ? ORDER BY id`,
);

const FIND_STORED_ANCESTORS = selectStatement<[customerId: string], object>(
  `SELECT ancestor.family_id, ancestor.ancestor_id
    FROM refresh_family family JOIN refresh_family_ancestor ancestor ON ancestor.family_id = family.id
    WHERE family.customer_id = ? ORDER BY ancestor.family_id, ancestor.ancestor_id`,
);

type FindFamilies = SelectStatement<[now: Date], { id: string }>;

/** The refresh families of customers (protocol §4.8), and the deletion of families of all kinds. */
@Injectable()
export class CustomerFamilies {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly denylist: Denylist,
  ) {}

  /** The families that lead to a customer, the one used last first. */
  async list(customerId: string): Promise<CustomerFamily[]> {
    const rows = await this.database.select(FIND_USABLE, [customerId, new Date(this.clock.now())]);
    const live: CustomerFamily[] = [];
    for (const family of rows.map(familyOf)) if (!(await this.denylist.hasEnded(family.claims))) live.push(family);
    return live;
  }

  /** The families that have not ended by their own rows, in a transaction. */
  async listIn(manager: EntityManager, customerId: string): Promise<CustomerFamily[]> {
    return (await selectIn(manager, FIND_USABLE, [customerId, new Date(this.clock.now())])).map(familyOf);
  }

  /** The rows of all families of a customer, ended ones too, without the hashes of their tokens. */
  async rows(customerId: string): Promise<Record<string, object[]>> {
    const families = await this.database.select(FIND_STORED, [customerId]);
    return {
      refresh_family: families.map((row) => withIsoTimes(row, ['begun_at', 'rotated_at', 'ended_at', 'expires_at'])),
      refresh_family_ancestor: await this.database.select(FIND_STORED_ANCESTORS, [customerId]),
    };
  }

  /** Deletes all families of a customer. */
  async deleteAll(customerId: string): Promise<void> {
    let found = FAMILIES_PER_STATEMENT;
    while (found === FAMILIES_PER_STATEMENT) {
      const rows = await this.database.select(FIND_SOME, [customerId]);
      found = rows.length;
      if (found > 0) await this.delete(rows.map(({ id }) => id));
    }
  }

  /** Returns those of the customers that have a family. `customerIds` has at least one id. */
  async withFamily(customerIds: string[]): Promise<string[]> {
    const found: string[] = [];
    for (const portion of portionsOf(customerIds)) {
      const list = valueList(portion);
      const find = selectStatement<(string | Date)[], { customer_id: string }>(
        `SELECT DISTINCT customer_id FROM refresh_family
          WHERE customer_id IN (${placeholdersFor(list)}) AND ended_at IS NULL AND expires_at > ?`,
      );
      const rows = await this.database.select(find, [...list, new Date(this.clock.now())]);
      found.push(...rows.map(({ customer_id }) => customer_id));
    }
    return found;
  }

  /**
   * Deletes expired families, and families of which an ancestor has a revocation that has expired. The caller deletes
   * these revocations afterwards, if all steps have run. Otherwise the families would be valid again (protocol §3.14).
   *
   * @param now the time with which the caller then deletes the expired revocations
   * @returns the number of families that each step deleted
   */
  async *deleteInSteps(now: Date): AsyncGenerator<number, void> {
    const findRevoked: FindFamilies = selectStatement(
      `SELECT DISTINCT ancestor.family_id AS id FROM revocation
        JOIN refresh_family_ancestor ancestor ON ancestor.ancestor_id = revocation.value
        WHERE revocation.kind IN ('jti', 'family') AND revocation.expires_at < ? LIMIT ${FAMILIES_PER_STATEMENT}`,
    );
    const findExpired: FindFamilies = selectStatement(
      `SELECT id FROM refresh_family WHERE expires_at < ? ORDER BY expires_at LIMIT ${FAMILIES_PER_STATEMENT}`,
    );
    for (const find of [findRevoked, findExpired]) {
      let found = FAMILIES_PER_STATEMENT;
      while (found === FAMILIES_PER_STATEMENT) {
        const rows = await this.database.select(find, [now]);
        found = rows.length;
        if (found > 0) await this.delete(rows.map(({ id }) => id));
        yield found;
      }
    }
  }

  /** Deletes families without revoking them: their access tokens stay valid until they expire. */
  async deleteIn(manager: EntityManager, familyIds: string[]): Promise<void> {
    for (const portion of portionsOf(familyIds)) {
      const list = valueList(portion);
      for (const [table, column] of [
        ['refresh_family_ancestor', 'family_id'],
        ['refresh_family', 'id'],
      ]) {
        const deleteRows = writeStatement<string[]>(
          `DELETE FROM ${table} WHERE ${column} IN (${placeholdersFor(list)})`,
        );
        await writeIn(manager, deleteRows, list);
      }
    }
  }

  private delete(familyIds: string[]): Promise<void> {
    return this.database.transaction((manager) => this.deleteIn(manager, familyIds));
  }
}

function familyOf(row: UsableRow): CustomerFamily {
  return {
    ...{ id: row.id, clientId: row.client_id, root: row.root, begunAt: timeOf(row.begun_at) },
    ...{ lastUsedAt: timeOf(row.rotated_at), expiresAt: timeOf(row.expires_at), claims: claimsOfFamily(row) },
  };
}
