import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { RaisedGenerations } from '../access-token/feed/raised-generations.js';
import { Audit, party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { insertIgnoreStatement, selectStatement, writeStatement } from '../platform/database/statement.js';
import { CustomerBrowsers } from './customer-browsers.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
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

const INSERT_UNFINISHED = insertIgnoreStatement({ into: UnfinishedErasure, columns: ['entity_id'] });

const DELETE_UNFINISHED = writeStatement<[entityId: string]>('DELETE FROM unfinished_erasure WHERE entity_id = ?');

/** The links of a customer, and the tokens with which they end. */
const FIND_LINKS = [
  'SELECT entity_id FROM browser_customer WHERE entity_id = ? AND organization_id IS NOT NULL',
  'SELECT entity_id FROM link_ancestor WHERE entity_id = ?',
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
    await this.finish(entityId, MAX_ROWS_PER_REQUEST);
    return organizationId !== undefined;
  }

  /** Notes a customer that the transaction has erased, so that the deletion of its data is finished. */
  noteUnfinished(manager: EntityManager, entityId: string): Promise<number> {
    return writeIn(manager, INSERT_UNFINISHED, [entityId]);
  }

  /** Like `finish`, for the purge. An error is logged only, so that a purge goes on with other customers. The next purge tries again. */
  async tryToFinish(entityId: string): Promise<void> {
    try {
      await this.finish(entityId, Number.POSITIVE_INFINITY);
    } catch (error) {
      const { message } = error as Error;
      this.logger.warn(`the data of customer ${entityId} is not deleted; the next purge tries again: ${message}`);
    }
  }

  /** Finishes erasures that failed. @param size the number of customers that one statement reads */
  async *finishInSteps(size: number): AsyncGenerator<number, void> {
    let after: string | undefined = '';
    while (after !== undefined) {
      const rows: { entity_id: string }[] = await this.database.select(findUnfinished(size), [after]);
      for (const { entity_id } of rows) {
        await this.tryToFinish(entity_id);
        yield 0;
      }
      after = rows.at(-1)?.entity_id;
    }
  }

  /**
   * Deletes the data of an erased customer. It may run again after an error.
   *
   * @param maxRows with more rows than this in the service's own tables, only extensions delete theirs
   */
  private async finish(entityId: string, maxRows: number): Promise<void> {
    const deletesAll = await this.hasAtMost(maxRows, entityId);
    if (deletesAll) {
      await this.browsers.endAll(entityId, false);
      await this.participants.deleteOwnRows(entityId);
    }
    await this.participants.onErase(entityId);
    if (deletesAll) await this.database.executeIdempotent(DELETE_UNFINISHED, [entityId]);
  }

  private async hasAtMost(maxRows: number, entityId: string): Promise<boolean> {
    if (maxRows === Number.POSITIVE_INFINITY) return true;
    const selects = [...FIND_LINKS, ...this.participants.ownRows];
    let count = 0;
    for (const select of selects) {
      const counted = selectStatement<[entityId: string], { row_count: number }>(
        `SELECT COUNT(*) AS row_count FROM (${select} LIMIT ${maxRows + 1}) found`,
      );
      count += Number((await this.database.select(counted, [entityId]))[0]?.row_count);
    }
    return count <= maxRows;
  }

  private async eraseIn(manager: EntityManager, entityId: string): Promise<string | undefined> {
    if ((await writeIn(manager, ERASE, [new Date(this.clock.now()), entityId])) === 0) return undefined;
    const [row] = await selectIn(manager, FIND_ORGANIZATION, [entityId]);
    await this.generations.recordCustomer(entityId, manager);
    await this.participants.forgetIn(manager, entityId);
    await this.noteUnfinished(manager, entityId);
    return row?.organization_id;
  }
}
