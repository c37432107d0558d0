import { Injectable } from '@nestjs/common';
import { type EntityManager, In } from 'typeorm';
import {
  agentEndedSince,
  clientEndedSince,
  ofExpiredRevocations,
  revokedAmong,
} from '../access-token/ended-statement.js';
import { MAX_ANCESTORS } from '../access-token/token-lineage.js';
import {
  CustomerDataParticipants,
  type CustomerDevice,
  type CustomerTables,
  type RefreshFamilyRecord,
} from '../identity/customer-data-participants.js';
import { isOfCurrentGeneration } from '../identity/customer-statements.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn } from '../platform/database/in-transaction.js';
import { type SqlValue, timeOf } from '../platform/database/sql-dialect.js';
import { type SelectStatement, selectStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { claimsOfFamily, FAMILY_COLUMNS, type StoredFamily } from './family-statements.js';
import { RefreshFamily, RefreshFamilyAncestor } from './refresh-family.entity.js';

/** Whether a family has not ended by its own row or by the generation of its customer. It may have expired. */
const HAS_NOT_ENDED = `ended_at IS NULL
  AND ${isOfCurrentGeneration('refresh_family.customer_id', 'refresh_family.generation')}`;

/** Also whether its client or agent has ended, or the family or one of its ancestors is revoked. */
const IS_LIVE = `${HAS_NOT_ENDED} AND expires_at > ?
  AND NOT ${clientEndedSince('refresh_family.client_id', 'refresh_family.begun_at')}
  AND NOT ${agentEndedSince('refresh_family.agent_id', 'refresh_family.agent_generation')}
  AND NOT ${revokedAmong('refresh_family own', 'own.id', 'own.id = refresh_family.id')}
  AND NOT ${revokedAmong('refresh_family_ancestor ancestor', 'ancestor.ancestor_id', 'ancestor.family_id = refresh_family.id')}`;

const FIND_LIVE = selectStatement<[customerId: string, now: Date], StoredFamily>(
  `SELECT ${FAMILY_COLUMNS.join(', ')} FROM refresh_family
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

type FindFamilies = SelectStatement<[now: Date], { id: string }>;

/**
 * The refresh families of customers (protocol §4.8), and the deletion of families of all kinds. A customer that a family
 * leads to is retained.
 */
@Injectable()
export class CustomerFamilies implements CustomerTables {
  /** Ended families too, without the hashes of refresh tokens. */
  readonly tables = [
    {
      name: 'refresh_family',
      find: `SELECT id, client_id, customer_id, organization_id, scope, lineage, root, generation, begun_at, rotated_at,
          counted_since, rotations, ended_at, expires_at FROM refresh_family WHERE customer_id = ? ORDER BY id`,
      times: ['begun_at', 'rotated_at', 'counted_since', 'ended_at', 'expires_at'],
    },
    {
      name: 'refresh_family_ancestor',
      find: `SELECT ancestor.family_id, ancestor.ancestor_id
        FROM refresh_family family JOIN refresh_family_ancestor ancestor ON ancestor.family_id = family.id
        WHERE family.customer_id = ? ORDER BY ancestor.family_id, ancestor.ancestor_id`,
    },
  ];
  readonly deletedRows = [
    'refresh_family WHERE customer_id = ?',
    `refresh_family family JOIN refresh_family_ancestor ancestor ON ancestor.family_id = family.id
      WHERE family.customer_id = ?`,
  ];

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    participants: CustomerDataParticipants,
  ) {
    participants.own.push(this);
  }

  async devices(manager: EntityManager, customerId: string): Promise<CustomerDevice[]> {
    const parameters: [string, Date] = [customerId, new Date(this.clock.now())];
    await deleteIn(manager, await selectIn(manager, FIND_OLD_ENDED, parameters));
    const families = await selectIn(manager, FIND_LIVE, parameters);
    return families.map((family) => ({
      ...{ kind: 'refresh family', root: family.root, claims: claimsOfFamily(family) },
      ...{ addedAt: timeOf(family.begun_at), usedAt: timeOf(family.rotated_at) },
      remove: (inManager) => deleteIn(inManager, [family]),
    }));
  }

  /** The families that lead to a customer, the one used last first. */
  list(customerId: string): Promise<StoredFamily[]> {
    return this.database.select(FIND_LIVE, [customerId, new Date(this.clock.now())]);
  }

  async refreshFamilies(customerId: string): Promise<RefreshFamilyRecord[]> {
    const families = await this.list(customerId);
    return families.map(({ id, client_id, rotated_at, expires_at }) => ({
      ...{ id, client_id },
      last_used_at: new Date(timeOf(rotated_at)).toISOString(),
      expires_at: new Date(timeOf(expires_at)).toISOString(),
    }));
  }

  async deleteRows(customerIds: string[]): Promise<void> {
    const list = valueList(customerIds);
    const findSome = selectStatement<string[], { id: string }>(
      `SELECT id FROM refresh_family WHERE customer_id IN (${placeholdersFor(list)}) LIMIT ${FAMILIES_PER_STATEMENT}`,
    );
    for await (const _ of this.deleteFound(findSome, list));
  }

  /** The purge has deleted the families that have expired, by its own time. */
  async mustRetain(customerIds: string[]): Promise<string[]> {
    const list = valueList(customerIds);
    const find = selectStatement<string[], { customer_id: string }>(
      `SELECT DISTINCT customer_id FROM refresh_family
        WHERE customer_id IN (${placeholdersFor(list)}) AND ${HAS_NOT_ENDED}`,
    );
    const rows = await this.database.select(find, list);
    return rows.map(({ customer_id }) => customer_id);
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
