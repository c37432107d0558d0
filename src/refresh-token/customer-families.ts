import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import { timeOf, withIsoTimes } from '../platform/database/sql-time.js';
import { selectStatement } from '../platform/database/statement.js';
import { placeholdersFor, valueList } from '../platform/database/value-list.js';
import { CONTENT_COLUMNS, claimsOfFamily } from './family-content.js';
import { FAMILIES_PER_DELETE, FamilyDeletion } from './family-deletion.js';
import type { RefreshFamily } from './refresh-family.entity.js';
import type { RefreshToken } from './refresh-token.entity.js';

/** A refresh family that leads to a customer. Times are in milliseconds since 1970. */
interface CustomerFamily {
  id: string;
  clientId: string;
  lastUsedAt: number;
  expiresAt: number;
}

/** The largest number of families of one customer, ended ones included (protocol §4.8). */
const MAX_FAMILIES_PER_CUSTOMER = 100;

const COLUMNS = [...CONTENT_COLUMNS, 'rotated_at', 'expires_at'] as const;

const FIND_USABLE = selectStatement<
  [customerId: string, now: Date],
  EntityRow<RefreshFamily, (typeof COLUMNS)[number]>
>(`SELECT ${COLUMNS.join(', ')} FROM refresh_family
    WHERE customer_id = ? AND ended_at IS NULL AND expires_at > ?
    ORDER BY rotated_at DESC, id LIMIT ${MAX_FAMILIES_PER_CUSTOMER}`);

/** Ended families come last, so that they are deleted before usable ones. */
const FIND_SURPLUS = selectStatement<[customerId: string], { id: string }>(
  `SELECT id FROM refresh_family WHERE customer_id = ?
    ORDER BY CASE WHEN ended_at IS NULL THEN 0 ELSE 1 END, rotated_at DESC, id
    LIMIT ${FAMILIES_PER_DELETE} OFFSET ${MAX_FAMILIES_PER_CUSTOMER}`,
);

const FIND_SOME = selectStatement<[customerId: string], { id: string }>(
  `SELECT id FROM refresh_family WHERE customer_id = ? LIMIT ${FAMILIES_PER_DELETE}`,
);

/** Without the hashes of refresh tokens. */
const FIND_STORED = selectStatement<
  [customerId: string],
  EntityRow<RefreshFamily, 'begun_at' | 'rotated_at' | 'ended_at' | 'expires_at'>
>(
  `SELECT id, client_id, customer_id, organization_id, scope, lineage, generation, begun_at, rotated_at,
      rotated_network, ended_at, expires_at
    FROM refresh_family WHERE customer_id = ? ORDER BY id`,
);

const FIND_STORED_TOKENS = selectStatement<[customerId: string], EntityRow<RefreshToken, 'expires_at' | 'replaced_at'>>(
  `SELECT token.family_id, token.expires_at, token.replaced_at
    FROM refresh_family family JOIN refresh_token token ON token.family_id = family.id
    WHERE family.customer_id = ? ORDER BY token.family_id, token.expires_at`,
);

const FIND_STORED_ANCESTORS = selectStatement<[customerId: string], object>(
  `SELECT ancestor.family_id, ancestor.ancestor_id
    FROM refresh_family family JOIN refresh_family_ancestor ancestor ON ancestor.family_id = family.id
    WHERE family.customer_id = ? ORDER BY ancestor.family_id, ancestor.ancestor_id`,
);

/** The refresh families of customers (protocol §4.8). */
@Injectable()
export class CustomerFamilies {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly denylist: Denylist,
    private readonly deletion: FamilyDeletion,
  ) {}

  /** The families that lead to a customer, the one used last first. */
  async list(customerId: string): Promise<CustomerFamily[]> {
    const rows = await this.database.select(FIND_USABLE, [customerId, new Date(this.clock.now())]);
    const haveEnded = await Promise.all(rows.map((row) => this.denylist.hasEnded(claimsOfFamily(row))));
    return rows
      .filter((_, index) => !haveEnded[index])
      .map(({ id, client_id: clientId, rotated_at, expires_at }) => {
        return { id, clientId, lastUsedAt: timeOf(rotated_at), expiresAt: timeOf(expires_at) };
      });
  }

  /** The rows of all families of a customer, ended ones too, without the hashes of their tokens. */
  async rows(customerId: string): Promise<Record<string, object[]>> {
    const families = await this.database.select(FIND_STORED, [customerId]);
    const tokens = await this.database.select(FIND_STORED_TOKENS, [customerId]);
    return {
      refresh_family: families.map((row) => withIsoTimes(row, ['begun_at', 'rotated_at', 'ended_at', 'expires_at'])),
      refresh_token: tokens.map((row) => withIsoTimes(row, ['expires_at', 'replaced_at'])),
      refresh_family_ancestor: await this.database.select(FIND_STORED_ANCESTORS, [customerId]),
    };
  }

  /**
   * Deletes the families used longest ago if a customer has too many. Their access tokens stay valid until they expire.
   */
  async deleteSurplus(customerId: string): Promise<void> {
    const rows = await this.database.select(FIND_SURPLUS, [customerId]);
    await this.deletion.delete(...rows.map(({ id }) => id));
  }

  /** Deletes all families of a customer, with their refresh tokens. */
  async deleteAll(customerId: string): Promise<void> {
    let found = FAMILIES_PER_DELETE;
    while (found === FAMILIES_PER_DELETE) {
      const rows = await this.database.select(FIND_SOME, [customerId]);
      await this.deletion.delete(...rows.map(({ id }) => id));
      found = rows.length;
    }
  }

  /** Returns those of the customers that have a family. `customerIds` has 1 to 500 ids. */
  async withFamily(customerIds: string[]): Promise<string[]> {
    const ids = valueList(customerIds);
    const find = selectStatement<(string | Date)[], { customer_id: string }>(
      `SELECT DISTINCT customer_id FROM refresh_family WHERE ended_at IS NULL AND expires_at > ?
        AND customer_id IN (${placeholdersFor(ids)})`,
    );
    const rows = await this.database.select(find, [new Date(this.clock.now()), ...ids]);
    return rows.map(({ customer_id }) => customer_id);
  }
}
