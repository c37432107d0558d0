import { TOKEN_DAY } from '../access-token/last-token-days.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import type { SqlValue } from '../platform/database/sql-value.js';
import {
  type SelectStatement,
  selectStatement,
  type WriteStatement,
  writeStatement,
} from '../platform/database/statement.js';
import { placeholdersFor } from '../platform/database/value-list.js';
import type { CustomerIdentity } from './customer-identity.entity.js';
import { HAS_GENERATION } from './deletable-customers.js';

/** A customer, and the last day on which it may have got a token. */
export type CustomerDay = EntityRow<CustomerIdentity, 'entity_id' | 'organization_id' | 'scope_seen_day'> & {
  /** `null` for a customer that an agent created. */
  day: number | null;
};

/** The next customers in the order of their creation. A row of release 1 has the day of its browser. */
export const selectNext = (limit: number): SelectStatement<[after: string, before: string], CustomerDay> =>
  selectStatement(`SELECT own.entity_id, own.organization_id, own.scope_seen_day,
      CASE WHEN own.scope_seen_day IS NULL AND browser.last_seen_day > own.token_day THEN browser.last_seen_day
        ELSE own.token_day END AS day
    FROM (SELECT entity_id, browser_id, organization_id, scope_seen_day, ${TOKEN_DAY} AS token_day
      FROM customer_identity WHERE entity_id > ? AND entity_id < ? ORDER BY entity_id LIMIT ${limit}) own
    LEFT JOIN customer_identity browser ON own.scope_seen_day IS NULL AND browser.entity_id = own.browser_id
    ORDER BY own.entity_id`);

/** The organizations in which a browser or customer is idle earlier than by default. */
export const FIND_IDLE_DAYS = selectStatement<[], { id: string; idle_days: number }>(
  'SELECT id, idle_days FROM organization WHERE idle_days IS NOT NULL',
);

/**
 * Deletes the data of customers of one organization, unless one of them got a token or a link since it was selected.
 * The ids stay, because they recognise the browsers. `scope_seen_day` gets the day of the purge. An erased row with this
 * day has participants that have not deleted their data yet. The last three parameters are the first day that is not idle.
 */
export const purgeRows = (ids: string[]): WriteStatement<SqlValue[]> =>
  writeStatement(`UPDATE customer_identity
    SET organization_id = NULL, group_id = NULL, unlinked_at = NULL, last_token_day = NULL, scope_seen_day = ?
    WHERE entity_id IN (${placeholdersFor(ids)}) AND organization_id = ?
      AND COALESCE(scope_seen_day, 0) < ? AND COALESCE(last_token_day, 0) < ?
      AND NOT EXISTS (SELECT 1 FROM browser_link
        WHERE browser_link.entity_id = customer_identity.entity_id AND browser_link.scope_seen_day >= ?)`);

/** Those of these customers whose row was purged and is not finished. */
export const selectPurged = (ids: string[]): SelectStatement<string[], { entity_id: string }> =>
  selectStatement(`SELECT entity_id FROM customer_identity
    WHERE entity_id IN (${placeholdersFor(ids)}) AND organization_id IS NULL AND scope_seen_day IS NOT NULL`);

/** A customer that was created for a link. Its row is not the row of a browser, and no cookie is recognised by it. */
const IS_OF_LINK = `browser_id = entity_id AND secret_hash IS NULL AND NOT (${HAS_GENERATION})`;

/** Finishes the purge of the rows that recognise browsers, and of those with a generation. */
export const finishRows = (ids: string[]): WriteStatement<SqlValue[]> =>
  writeStatement(`UPDATE customer_identity SET scope_seen_day = NULL
    WHERE entity_id IN (${placeholdersFor(ids)}) AND organization_id IS NULL AND NOT (${IS_OF_LINK})`);

/** Deletes the other rows, when no transfer token of their customers is valid any more. */
export const deleteRows = (ids: string[]): WriteStatement<SqlValue[]> =>
  writeStatement(`DELETE FROM customer_identity
    WHERE entity_id IN (${placeholdersFor(ids)}) AND organization_id IS NULL AND ${IS_OF_LINK} AND scope_seen_day < ?`);
