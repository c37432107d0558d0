import { Injectable } from '@nestjs/common';
import { type EntityManager, In } from 'typeorm';
import { Denylist } from '../access-token/denylist.js';
import { clientEndedSince, ofExpiredRevocations, revokedAmong } from '../access-token/ended-statement.js';
import { MAX_ANCESTORS } from '../access-token/token-lineage.js';
import {
  type CustomerDataParticipant,
  CustomerDataParticipants,
  type FindOwnRows,
  type RefreshFamilyRecord,
} from '../identity/customer-data-participants.js';
import { CustomerDevices } from '../identity/customer-devices.js';
import { isOfCurrentGeneration } from '../identity/customer-statements.js';
import { type ExportPage, exportedTable, exportPage } from '../identity/export-page.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn } from '../platform/database/in-transaction.js';
import { type SqlValue, timeOf, withIsoTimes } from '../platform/database/sql-dialect.js';
import { type EntityRow, type SelectStatement, selectStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { CONTENT_COLUMNS, claimsOfFamily } from './family-statements.js';
import { RefreshFamily, RefreshFamilyAncestor } from './refresh-family.entity.js';

/** Whether a family has not ended by its own row or by the generation of its customer. */
const IS_USABLE = `ended_at IS NULL AND expires_at > ?
  AND ${isOfCurrentGeneration('refresh_family.customer_id', 'refresh_family.generation')}`;

const COLUMNS = [...CONTENT_COLUMNS, 'root', 'rotated_at', 'expires_at'] as const;
type LiveFamily = EntityRow<RefreshFamily, (typeof COLUMNS)[number]>;

/**
 * Also whether its client was deleted, or the family or one of its ancestors is revoked. Families whose agent has ended
 * remain (`Denylist.withoutEndedAgents`).
 */
const IS_LIVE = `${IS_USABLE}
  AND NOT ${clientEndedSince('refresh_family.client_id', 'refresh_family.begun_at')}
  AND NOT ${revokedAmong('refresh_family own', 'own.id', 'own.id = refresh_family.id')}
  AND NOT ${revokedAmong('refresh_family_ancestor ancestor', 'ancestor.ancestor_id', 'ancestor.family_id = refresh_family.id')}`;

const FIND_LIVE = selectStatement<[customerId: string, now: Date], LiveFamily>(
  `SELECT ${COLUMNS.join(', ')} FROM refresh_family
    WHERE customer_id = ? AND ${IS_LIVE} ORDER BY rotated_at DESC, id`,
);

/** The number of families that one statement reads. */
const FAMILIES_PER_STATEMENT = 500;
/** The number of ended families of a customer that remain until they expire, so that reads of its families are bounded. */
const MAX_ENDED_FAMILIES = 100;

const FIND_OLD_ENDED = selectStatement<[customerId: string, now: Date], { id: string }>(
  `SELECT id FROM refresh_family WHERE customer_id = ? AND NOT (${IS_LIVE})
    ORDER BY begun_at DESC, id LIMIT ${FAMILIES_PER_STATEMENT} OFFSET ${MAX_ENDED_FAMILIES}`,
);

/** No statement deletes more than 1,000 ancestors. */
const FAMILIES_PER_DELETION = Math.floor(1_000 / MAX_ANCESTORS);

const FIND_SOME = selectStatement<[customerId: string], { id: string }>(
  `SELECT id FROM refresh_family WHERE customer_id = ? LIMIT ${FAMILIES_PER_STATEMENT}`,
);

type StoredTimes = EntityRow<RefreshFamily, 'begun_at' | 'rotated_at' | 'counted_since' | 'ended_at' | 'expires_at'>;

/** Ended families too, without the hashes of refresh tokens. */
const EXPORTED_TABLES = [
  exportedTable<StoredTimes>({
    name: 'refresh_family',
    find: `SELECT id, client_id, customer_id, organization_id, scope, lineage, root, generation, begun_at, rotated_at,
        rotated_network, counted_since, rotations, ended_at, expires_at
      FROM refresh_family WHERE customer_id = ? ORDER BY id`,
    shown: (row) => withIsoTimes(row, ['begun_at', 'rotated_at', 'counted_since', 'ended_at', 'expires_at']),
  }),
  exportedTable({
    name: 'refresh_family_ancestor',
    find: `SELECT ancestor.family_id, ancestor.ancestor_id
      FROM refresh_family family JOIN refresh_family_ancestor ancestor ON ancestor.family_id = family.id
      WHERE family.customer_id = ? ORDER BY ancestor.family_id, ancestor.ancestor_id`,
    shown: (row) => row,
  }),
];

type FindFamilies = SelectStatement<[now: Date], { id: string }>;

/**
 * The refresh families of customers (protocol §4.8), and the deletion of families of all kinds. A customer that a family
 * leads to is retained.
 */
@Injectable()
export class CustomerFamilies implements CustomerDataParticipant {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly denylist: Denylist,
    participants: CustomerDataParticipants,
    devices: CustomerDevices,
  ) {
    participants.add(this);
    devices.add('refresh family', async (manager, entityId) => {
      const ended = await selectIn(manager, FIND_OLD_ENDED, [entityId, new Date(this.clock.now())]);
      await deleteIn(manager, ended);
      const families = await this.list(entityId, manager);
      return families.map((family) => ({
        ...{ root: family.root, addedAt: timeOf(family.begun_at), usedAt: timeOf(family.rotated_at) },
        ...{ claims: claimsOfFamily(family), remove: (inManager) => deleteIn(inManager, [family]) },
      }));
    });
  }

  /** The families that lead to a customer, the one used last first. @param manager of a transaction */
  async list(customerId: string, manager?: EntityManager): Promise<LiveFamily[]> {
    const parameters: [string, Date] = [customerId, new Date(this.clock.now())];
    const rows = await (manager
      ? selectIn(manager, FIND_LIVE, parameters)
      : this.database.select(FIND_LIVE, parameters));
    return this.denylist.withoutEndedAgents(rows, manager);
  }

  exportRows(customerId: string, after?: string): Promise<ExportPage> {
    return exportPage(this.database, EXPORTED_TABLES, customerId, after);
  }

  async refreshFamilies(customerId: string): Promise<RefreshFamilyRecord[]> {
    const families = await this.list(customerId);
    return families.map(({ id, client_id, rotated_at, expires_at }) => ({
      ...{ id, client_id },
      last_used_at: new Date(timeOf(rotated_at)).toISOString(),
      expires_at: new Date(timeOf(expires_at)).toISOString(),
    }));
  }

  readonly ownRows: FindOwnRows[] = [
    (list) => `SELECT customer_id AS entity_id FROM refresh_family WHERE customer_id IN (${list})`,
    (list) => `SELECT family.customer_id AS entity_id FROM refresh_family family
      JOIN refresh_family_ancestor ancestor ON ancestor.family_id = family.id WHERE family.customer_id IN (${list})`,
  ];

  async linkedIds(): Promise<string[]> {
    return [];
  }

  /** Deletes all families of a customer. */
  async onErase(customerId: string): Promise<void> {
    for await (const _ of this.deleteFound(FIND_SOME, [customerId]));
  }

  /** Returns those of the customers that have a family. `customerIds` has at least one id. */
  async mustRetain(customerIds: string[]): Promise<string[]> {
    const found: string[] = [];
    for (const portion of portionsOf(customerIds)) {
      const list = valueList(portion);
      const find = selectStatement<(string | Date)[], { customer_id: string }>(
        `SELECT DISTINCT customer_id FROM refresh_family
          WHERE customer_id IN (${placeholdersFor(list)}) AND ${IS_USABLE}`,
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
      `SELECT DISTINCT ancestor.family_id AS id
        FROM ${ofExpiredRevocations('refresh_family_ancestor ancestor', 'ancestor.ancestor_id')}
        LIMIT ${FAMILIES_PER_STATEMENT}`,
    );
    const findExpired: FindFamilies = selectStatement(
      `SELECT id FROM refresh_family WHERE expires_at < ? ORDER BY expires_at LIMIT ${FAMILIES_PER_STATEMENT}`,
    );
    for (const find of [findRevoked, findExpired]) yield* this.deleteFound(find, [now]);
  }

  private async *deleteFound<Parameters extends SqlValue[]>(
    find: SelectStatement<Parameters, { id: string }>,
    parameters: NoInfer<Parameters>,
  ): AsyncGenerator<number, void> {
    let found = FAMILIES_PER_STATEMENT;
    while (found === FAMILIES_PER_STATEMENT) {
      const rows = await this.database.select(find, parameters);
      found = rows.length;
      if (found > 0) await this.database.transaction((manager) => deleteIn(manager, rows));
      yield found;
    }
  }
}

/** Deletes families without revoking them: their access tokens stay valid until they expire. */
async function deleteIn(manager: EntityManager, families: { id: string }[]): Promise<void> {
  for (const portion of portionsOf(families, FAMILIES_PER_DELETION)) {
    const ids = In(valueList(portion.map(({ id }) => id)));
    await manager.delete(RefreshFamilyAncestor, { familyId: ids });
    await manager.delete(RefreshFamily, { id: ids });
  }
}
