import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, valueList } from '../platform/database/value-list.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { IS_ERASED, isDeletable } from './deletable-customers.js';
import { finishRows, selectPurged } from './idle-customer-statements.js';

/** The number of customers whose data participants delete in one step, within which the purge holds its lease. */
const MAX_CUSTOMERS_PER_STEP = 100;

/** The purge of idle customers uses `scope_seen_day` in the same way: the participants have not deleted their data. */
const IS_UNFINISHED = `${IS_ERASED} AND scope_seen_day IS NOT NULL`;

/** Erases the customers of idle browsers, and the data that participants store about the customers. */
@Injectable()
export class BrowserCustomerErasure {
  constructor(
    private readonly database: Database,
    private readonly participants: CustomerDataParticipants,
  ) {}

  /**
   * The row is erased before the data of participants is deleted, so that no request adds data afterwards. The caller
   * may stop after any step: the next purge finds the customers whose participants were not called.
   *
   * @param condition of the rows, with `parameters` as its parameters
   * @param day the first day that is not idle
   * @param size the maximum number of rows that one statement reads
   */
  async *eraseInSteps(
    condition: string,
    parameters: string[],
    day: number,
    size: number,
  ): AsyncGenerator<number, void> {
    const limit = Math.min(size, MAX_CUSTOMERS_PER_STEP);
    const findNext = selectStatement<string[], { entity_id: string }>(`SELECT entity_id FROM customer_identity
      WHERE ${condition} AND ((NOT (${IS_ERASED}) AND ${isDeletable(day)}) OR (${IS_UNFINISHED})) LIMIT ${limit}`);
    let found = limit;
    while (found === limit) {
      const ids = (await this.database.select(findNext, parameters)).map(({ entity_id }) => entity_id);
      found = ids.length;
      if (found === 0) return;
      await this.erase(valueList(ids), day);
      yield 0;
    }
  }

  private async erase(ids: string[], day: number): Promise<void> {
    const eraseRows = writeStatement<string[]>(`UPDATE customer_identity
      SET organization_id = NULL, group_id = NULL, unlinked_at = NULL, scope_seen_day = ${day}
      WHERE entity_id IN (${placeholdersFor(ids)}) AND NOT (${IS_ERASED}) AND ${isDeletable(day)}`);
    await this.database.execute(eraseRows, ids);
    const erased = (await this.database.select(selectPurged(ids), ids)).map(({ entity_id }) => entity_id);
    if (erased.length === 0) return;
    for (const id of erased) await this.participants.onErase(id);
    const list = valueList(erased);
    await this.database.execute(finishRows(list), list);
  }
}
