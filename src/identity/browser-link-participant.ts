import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import { selectStatement } from '../platform/database/statement.js';
import type { BrowserLink } from './browser-link.entity.js';
import { type CustomerDataParticipant, CustomerDataParticipants } from './customer-data-participants.js';
import { DELETE_LINKS_OF_CUSTOMER, DELETE_UNUSED_ANCESTORS } from './link-statements.js';

const FIND_REDEMPTIONS = selectStatement<[entityId: string], EntityRow<BrowserLink, 'redemption'>>({
  columns: ['redemption'],
  from: 'browser_link WHERE entity_id = ? AND redemption IS NOT NULL',
  batch: true,
});

/** Deletes the browser links of erased customers, and retains the customers that a link leads to. */
@Injectable()
export class BrowserLinkParticipant implements CustomerDataParticipant {
  constructor(
    private readonly database: Database,
    participants: CustomerDataParticipants,
  ) {
    participants.add(this);
  }

  async onErase(entityId: string): Promise<void> {
    const rows = await this.database.select(FIND_REDEMPTIONS, [entityId]);
    await this.database.executeIdempotent(DELETE_LINKS_OF_CUSTOMER, [entityId]);
    for (const { redemption } of rows)
      await this.database.executeIdempotent(DELETE_UNUSED_ANCESTORS, [redemption as string]);
  }

  async mustRetain(entityIds: string[]): Promise<string[]> {
    const findLinked = selectStatement<string[], EntityRow<BrowserLink, 'entity_id'>>(
      `SELECT DISTINCT entity_id FROM browser_link WHERE entity_id IN (${entityIds.map(() => '?').join()})`,
    );
    return (await this.database.select(findLinked, entityIds)).map(({ entity_id }) => entity_id);
  }

  async linkedIds(): Promise<string[]> {
    return [];
  }
}
