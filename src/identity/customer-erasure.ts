import { Injectable, Logger, ServiceUnavailableException } from '@nestjs/common';
import { type EntityManager, In, MoreThan } from 'typeorm';
import { RaisedGenerations } from '../access-token/feed/raised-generations.js';
import { Audit, party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { valueList } from '../platform/database/value-list.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerIdentity, UnfinishedErasure } from './customer-identity.entity.js';

/** What an erased customer loses. */
export const ERASED_COLUMNS = 'group_id = NULL, creator = NULL, last_token_day = NULL, created_at = NULL';

/** Raises both generations in the same statement, so that a token or link of a request under way has ended too. */
const ERASE = writeStatement<[now: Date, entityId: string]>(
  `UPDATE customer SET version = version + 1, link_generation = generation + 1, generation = generation + 1,
      erased_at = ?, ${ERASED_COLUMNS} WHERE entity_id = ? AND erased_at IS NULL`,
);

/** The most rows of the service's own tables that the request of an erasure deletes. */
const MAX_ROWS_PER_REQUEST = 1_000;

/** After so many errors of an unavailable database, each after up to a second, the purge does not try other customers. */
const MAX_UNAVAILABLE_COUNT = 3;

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
  ) {}

  /**
   * One transaction ends everything and deletes what identifies the customer. The rest follows, here or in the purge.
   *
   * @param actor the caller, for the audit event
   * @returns whether the customer existed
   */
  async erase(entityId: string, actor: AuditParty): Promise<boolean> {
    const organizationId = await this.database.transaction(async (manager) => {
      if ((await writeIn(manager, ERASE, [new Date(this.clock.now()), entityId])) === 0) return undefined;
      await this.generations.record('customer-api', [entityId], manager);
      for (const own of this.participants.own) await own.forgetIn?.(manager, entityId);
      await this.noteUnfinished(manager, [entityId]);
      return (await manager.findOneByOrFail(CustomerIdentity, { entityId })).organizationId;
    });
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
   * Deletes the data of customers in a purge: the rows of all of them together, or of each one alone if that fails. An
   * error of one customer is logged only, and the next purge tries again.
   *
   * @param entityIds 1 to 500 ids
   * @throws ServiceUnavailableException if the database was unavailable for several customers, each for a second
   */
  async finishInPurge(entityIds: string[]): Promise<void> {
    let unavailableCount = 0;
    const tryToDelete = (id: string, step: () => Promise<void>) =>
      step().catch((error: Error) => {
        if (error instanceof ServiceUnavailableException && ++unavailableCount === MAX_UNAVAILABLE_COUNT) throw error;
        this.logger.warn(`the data of customer ${id} is not deleted; the next purge tries again: ${error.message}`);
      });
    const deletedTogether =
      entityIds.length > 1 &&
      (await this.deleteRows(entityIds)
        .then(() => true)
        .catch(() => false));
    const finished: string[] = [];
    try {
      for (const entityId of entityIds)
        await tryToDelete(entityId, async () => {
          if (!deletedTogether) await this.deleteRows([entityId]);
          await this.participants.onErase(entityId);
          finished.push(entityId);
        });
    } finally {
      if (finished.length > 0) await tryToDelete(finished.join(), () => this.deleteUnfinished(finished));
    }
  }

  /** Finishes erasures that failed. @param size the number of customers that one statement reads */
  async *finishInSteps(size: number): AsyncGenerator<number, void> {
    let after: string | undefined = '';
    while (after !== undefined) {
      const options = { where: { entityId: MoreThan(after) }, order: { entityId: 'ASC' }, take: size } as const;
      const rows: UnfinishedErasure[] = await this.database.read(UnfinishedErasure, options);
      for (const { entityId } of rows) {
        await this.finishInPurge([entityId]);
        yield 0;
      }
      after = rows.at(-1)?.entityId;
    }
  }

  private async finish(entityId: string): Promise<void> {
    const deletesAll = await this.hasAtMostMaxRows(entityId);
    if (deletesAll) await this.deleteRows([entityId]);
    await this.participants.onErase(entityId);
    if (deletesAll) await this.deleteUnfinished([entityId]);
  }

  /** Deletes the rows about erased customers in the service's own tables. */
  private async deleteRows(entityIds: string[]): Promise<void> {
    for (const own of this.participants.own) await own.deleteRows?.(entityIds);
  }

  private async deleteUnfinished(entityIds: string[]): Promise<void> {
    const rows = { entityId: In(valueList(entityIds)) };
    await this.database.transaction((manager) => manager.delete(UnfinishedErasure, rows));
  }

  private async hasAtMostMaxRows(entityId: string): Promise<boolean> {
    let count = 0;
    for (const rows of this.participants.own.flatMap(({ deletedRows = [] }) => deletedRows)) {
      const countRows = selectStatement<[entityId: string], { row_count: number }>(
        `SELECT COUNT(*) AS row_count FROM (SELECT 1 FROM ${rows} LIMIT ${MAX_ROWS_PER_REQUEST + 1}) found`,
      );
      count += Number((await this.database.select(countRows, [entityId]))[0]?.row_count);
    }
    return count <= MAX_ROWS_PER_REQUEST;
  }
}
