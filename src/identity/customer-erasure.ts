import { Injectable, Logger } from '@nestjs/common';
import { type EntityManager, In } from 'typeorm';
import { RaisedGenerations } from '../access-token/feed/raised-generations.js';
import { Audit, party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, valueList } from '../platform/database/value-list.js';
import { CustomerBrowsers } from './customer-browsers.js';
import { CustomerDataParticipants, type FindOwnRows } from './customer-data-participants.js';
import { UnfinishedErasure } from './customer-identity.entity.js';

const FIND_ORGANIZATION = selectStatement<[entityId: string], { organization_id: string }>(
  'SELECT organization_id FROM customer WHERE entity_id = ?',
);

/** What an erased customer loses. */
export const ERASED_COLUMNS = 'group_id = NULL, creator = NULL, last_token_day = NULL, created_at = NULL';

/** Raises both generations in the same statement, so that a token or link of a request under way has ended too. */
const ERASE = writeStatement<[now: Date, entityId: string]>(
  `UPDATE customer SET version = version + 1, link_generation = generation + 1, generation = generation + 1,
      erased_at = ?, ${ERASED_COLUMNS} WHERE entity_id = ? AND erased_at IS NULL`,
);

/** The links of customers, and the tokens with which they end. */
const FIND_LINKS: FindOwnRows[] = [
  (list) => `SELECT entity_id FROM browser_customer WHERE entity_id IN (${list}) AND organization_id IS NOT NULL`,
  (list) => `SELECT entity_id FROM link_ancestor WHERE entity_id IN (${list})`,
];

const findUnfinished = (limit: number) =>
  selectStatement<[after: string], { entity_id: string }>(
    `SELECT entity_id FROM unfinished_erasure WHERE entity_id > ? ORDER BY entity_id LIMIT ${limit}`,
  );

/** The most rows of the service's own tables that the request of an erasure deletes. */
const MAX_ROWS_PER_REQUEST = 1_000;

/** Erases customers (protocol §5.8). */
@Injectable()
export class CustomerErasure {
  private readonly logger = new Logger(CustomerErasure.name);

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly generations: RaisedGenerations,
    private readonly audit: Audit,
    private readonly participants: CustomerDataParticipants,
    private readonly browsers: CustomerBrowsers,
  ) {}

  /**
   * Ends a customer's tokens and links and deletes all its data except its id, organization, generations and browsers.
   * The browsers' other customers remain. One transaction ends everything and deletes what identifies the customer.
   * Extensions then delete their data. If that fails, a retry or the purge deletes it. Of the service's own tables, the
   * request deletes at most 1,000 rows. If there are more, the purge deletes all of them.
   *
   * @param actor the caller, for the audit event
   * @returns whether the customer existed
   */
  async erase(entityId: string, actor: AuditParty): Promise<boolean> {
    const organizationId = await this.database.transaction((manager) => this.eraseIn(manager, entityId));
    if (organizationId !== undefined)
      this.audit.success('identity.erased', actor, party('customer', entityId), { organizationId });
    // Also for an erased customer, because an earlier erasure may have failed after its transaction.
    await this.finish(entityId);
    return organizationId !== undefined;
  }

  /** Notes customers that the transaction has erased, so that the deletion of their data is finished. */
  async noteUnfinished(manager: EntityManager, entityIds: string[]): Promise<void> {
    const rows = entityIds.map((entityId) => ({ entityId }));
    await manager.createQueryBuilder().insert().into(UnfinishedErasure).values(rows).orIgnore().execute();
  }

  /**
   * Deletes the data of customers in a purge. Most idle customers have no rows left, so few statements are enough for all
   * of them. An error of one customer is logged only, and the next purge tries again.
   *
   * @param entityIds 1 to 500 ids
   */
  async finishInPurge(entityIds: string[]): Promise<void> {
    const tryToDelete = (id: string, step: () => Promise<void>) =>
      step().catch(({ message }: Error) =>
        this.logger.warn(`the data of customer ${id} is not deleted; the next purge tries again: ${message}`),
      );
    await tryToDelete(entityIds.join(), async () => {
      const withRows = await this.withRows(entityIds);
      const finished: string[] = [];
      for (const entityId of entityIds)
        await tryToDelete(entityId, async () => {
          if (withRows.has(entityId)) await this.deleteRows(entityId);
          await this.participants.onErase(entityId);
          finished.push(entityId);
        });
      if (finished.length > 0) await this.deleteUnfinished(finished);
    });
  }

  /** Finishes erasures that failed. @param size the number of customers that one statement reads */
  async *finishInSteps(size: number): AsyncGenerator<number, void> {
    let after: string | undefined = '';
    while (after !== undefined) {
      const rows: { entity_id: string }[] = await this.database.select(findUnfinished(size), [after]);
      for (const { entity_id } of rows) {
        await this.finishInPurge([entity_id]);
        yield 0;
      }
      after = rows.at(-1)?.entity_id;
    }
  }

  /**
   * Deletes the data of an erased customer in its request. It may run again after an error. If the service's own tables
   * have more than 1,000 rows, only extensions delete theirs.
   */
  private async finish(entityId: string): Promise<void> {
    const deletesAll = await this.hasAtMostMaxRows(entityId);
    if (deletesAll) await this.deleteRows(entityId);
    await this.participants.onErase(entityId);
    if (deletesAll) await this.deleteUnfinished([entityId]);
  }

  /** Deletes the rows about an erased customer in the service's own tables. */
  private async deleteRows(entityId: string): Promise<void> {
    await this.browsers.endAll(entityId, false);
    await this.participants.deleteOwnRows(entityId);
  }

  private async deleteUnfinished(entityIds: string[]): Promise<void> {
    const rows = { entityId: In(valueList(entityIds)) };
    await this.database.transaction((manager) => manager.delete(UnfinishedErasure, rows));
  }

  /** Those of the customers that have rows in the service's own tables. */
  private async withRows(entityIds: string[]): Promise<Set<string>> {
    const list = valueList(entityIds);
    const found = new Set<string>();
    for (const find of this.findRows()) {
      const findIds = selectStatement<string[], { entity_id: string }>(
        `SELECT DISTINCT entity_id FROM (${find(placeholdersFor(list))}) found`,
      );
      for (const { entity_id } of await this.database.select(findIds, list)) found.add(entity_id);
    }
    return found;
  }

  private findRows(): FindOwnRows[] {
    return [...FIND_LINKS, ...this.participants.ownRows];
  }

  private async hasAtMostMaxRows(entityId: string): Promise<boolean> {
    let count = 0;
    for (const find of this.findRows()) {
      const counted = selectStatement<[entityId: string], { row_count: number }>(
        `SELECT COUNT(*) AS row_count FROM (${find('?')} LIMIT ${MAX_ROWS_PER_REQUEST + 1}) found`,
      );
      count += Number((await this.database.select(counted, [entityId]))[0]?.row_count);
    }
    return count <= MAX_ROWS_PER_REQUEST;
  }

  private async eraseIn(manager: EntityManager, entityId: string): Promise<string | undefined> {
    if ((await writeIn(manager, ERASE, [new Date(this.clock.now()), entityId])) === 0) return undefined;
    const [row] = await selectIn(manager, FIND_ORGANIZATION, [entityId]);
    await this.generations.recordCustomer(entityId, manager);
    await this.participants.forgetIn(manager, entityId);
    await this.noteUnfinished(manager, [entityId]);
    return row?.organization_id;
  }
}
