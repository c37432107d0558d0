import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { MAX_LIST_VALUES, placeholdersFor, valueList } from '../platform/database/value-list.js';
import type { BrowserLink } from './browser-link.entity.js';
import {
  type CustomerDataParticipant,
  CustomerDataParticipants,
  type ExportedRows,
} from './customer-data-participants.js';
import { IdleRule } from './idle-rule.js';
import { NO_LINK_HAS_REDEMPTION } from './link-statements.js';

const FIND_SOME = selectStatement<[entityId: string], EntityRow<BrowserLink, 'browser_id' | 'redemption'>>(
  `SELECT browser_id, redemption FROM browser_link WHERE entity_id = ? LIMIT ${MAX_LIST_VALUES}`,
);

/** The tables of browser links, without the hashes in `link_credential`. The parameter is the customer. */
const EXPORTS = {
  browser_link: selectStatement<[entityId: string], object>(
    `SELECT browser_id, organization_id, group_id, entity_id, generation, scope_seen_day, redemption, lineage,
      agent_id, agent_generation FROM browser_link WHERE entity_id = ?`,
  ),
  link_ancestor: selectStatement<[entityId: string], object>(
    `SELECT DISTINCT ancestor.redemption, ancestor.ancestor_id FROM link_ancestor ancestor
      JOIN browser_link link ON link.redemption = ancestor.redemption WHERE link.entity_id = ?`,
  ),
  browser_origin: selectStatement<[entityId: string], object>(
    `SELECT origin.browser_id, origin.made_from FROM browser_origin origin
      JOIN browser_link link ON link.browser_id = origin.browser_id WHERE link.entity_id = ?`,
  ),
};

/** Deletes the browser links of erased customers, and retains the customers that a link leads to that is not idle. */
@Injectable()
export class BrowserLinkParticipant implements CustomerDataParticipant {
  constructor(
    private readonly database: Database,
    private readonly idleRule: IdleRule,
    participants: CustomerDataParticipants,
  ) {
    participants.add(this);
  }

  /** A statement deletes a limited number of links, so that the number of links does not make an erasure fail. */
  async onErase(entityId: string): Promise<void> {
    let found = MAX_LIST_VALUES;
    while (found === MAX_LIST_VALUES) {
      const rows = await this.database.select(FIND_SOME, [entityId]);
      found = rows.length;
      if (found === 0) return;
      const browsers = valueList([...new Set(rows.map(({ browser_id }) => browser_id))]);
      await this.database.executeIdempotent(deleteLinksOf(browsers), [entityId, ...browsers]);
      const redemptions = [...new Set(rows.flatMap(({ redemption }) => redemption ?? []))];
      if (redemptions.length === 0) continue;
      const list = valueList(redemptions);
      await this.database.executeIdempotent(deleteAncestorsOf(list), list);
    }
  }

  async mustRetain(entityIds: string[]): Promise<string[]> {
    const list = valueList(entityIds);
    const findLinked = selectStatement<
      string[],
      { entity_id: string; organization_id: string; seen_day: number }
    >(`SELECT entity_id, organization_id, MAX(scope_seen_day) AS seen_day FROM browser_link
      WHERE entity_id IN (${placeholdersFor(list)}) GROUP BY entity_id, organization_id`);
    const rows = await this.database.select(findLinked, list);
    return rows
      .filter(({ organization_id, seen_day }) => !this.idleRule.isIdle(organization_id, seen_day))
      .map(({ entity_id }) => entity_id);
  }

  async linkedIds(): Promise<string[]> {
    return [];
  }

  async exportRows(entityId: string): Promise<ExportedRows> {
    const rows: ExportedRows = {};
    for (const [table, statement] of Object.entries(EXPORTS))
      rows[table] = await this.database.select(statement, [entityId]);
    return rows;
  }
}

const deleteLinksOf = (browsers: string[]) =>
  writeStatement<string[]>(
    `DELETE FROM browser_link WHERE entity_id = ? AND browser_id IN (${placeholdersFor(browsers)})`,
  );

/** Deletes the ancestors of redemptions that no link names any more. */
const deleteAncestorsOf = (redemptions: string[]) =>
  writeStatement<string[]>(
    `DELETE FROM link_ancestor WHERE redemption IN (${placeholdersFor(redemptions)}) AND ${NO_LINK_HAS_REDEMPTION}`,
  );
