import type { SqlValue } from '../platform/database/sql-value.js';
import {
  type SelectStatement,
  selectStatement,
  type WriteStatement,
  writeStatement,
} from '../platform/database/statement.js';
import { placeholdersFor } from '../platform/database/value-list.js';
import { ledCustomers } from './led-customers.js';

/** The number of times that browsers are followed to the ones that they were made from, or that were made from them. */
const MAX_LEVELS = 100;

/** A browser and the browsers that it was made from, the earliest last. */
export const FIND_BROWSER_AND_ORIGINS = selectStatement<
  [browserId: string],
  { browser_id: string; secret_hash: string | null }
>(
  `WITH RECURSIVE line (browser_id, depth) AS (
      SELECT entity_id, 0 FROM customer_identity WHERE entity_id = ?
      UNION ALL SELECT origin.made_from, line.depth + 1
        FROM line JOIN browser_origin origin ON origin.browser_id = line.browser_id WHERE line.depth < ${MAX_LEVELS})
    SELECT line.browser_id, browser.secret_hash FROM line
      LEFT JOIN customer_identity browser ON browser.entity_id = line.browser_id ORDER BY line.depth`,
);

/** The browsers that were made from a browser, at any depth up to the maximum. */
export const FIND_MADE_FROM = selectStatement<[browserId: string], { browser_id: string }>(
  `WITH RECURSIVE made (browser_id, depth) AS (
      SELECT browser_id, 1 FROM browser_origin WHERE made_from = ?
      UNION ALL SELECT origin.browser_id, made.depth + 1
        FROM made JOIN browser_origin origin ON origin.made_from = made.browser_id WHERE made.depth < ${2 * MAX_LEVELS})
    SELECT browser_id FROM made`,
);

/** An organization, or one of its groups. */
export interface ForgottenScope {
  organizationId: string;
  /** If omitted, all groups of the organization. */
  groupId: string | undefined;
}

/** The parameters of the conditions on an organization and group below. */
export function parametersOf({ organizationId, groupId }: ForgottenScope): string[] {
  return groupId === undefined ? [organizationId] : [organizationId, groupId];
}

const conditionOf = ({ groupId }: ForgottenScope) =>
  groupId === undefined ? 'organization_id = ?' : 'organization_id = ? AND group_id = ?';

/** In the statements below, each parameter that is an array is a `valueList`. */
const listOf = (list: string[]) => `(${placeholdersFor(list)})`;

/** The customers of rows and links of browsers in a scope, also those that have ended. */
export function findCustomers(
  browsers: string[],
  scope: ForgottenScope,
): SelectStatement<SqlValue[], { entity_id: string }> {
  const condition = `browser_id IN ${listOf(browsers)} AND ${conditionOf(scope)}`;
  return selectStatement(`SELECT entity_id FROM customer_identity WHERE ${condition}
    UNION SELECT entity_id FROM browser_link WHERE ${condition}`);
}

/** The redemptions of the links of browsers in a scope. */
export function findRedemptions(
  browsers: string[],
  scope: ForgottenScope,
): SelectStatement<SqlValue[], { redemption: string }> {
  return selectStatement(`SELECT DISTINCT redemption FROM browser_link
    WHERE browser_id IN ${listOf(browsers)} AND ${conditionOf(scope)} AND redemption IS NOT NULL`);
}

/** Ends own rows. The rows stay, because they recognise the browsers. */
export function unlinkRows(browsers: string[], scope: ForgottenScope): WriteStatement<SqlValue[]> {
  return writeStatement(`UPDATE customer_identity SET unlinked_at = ?
    WHERE unlinked_at IS NULL AND browser_id IN ${listOf(browsers)} AND ${conditionOf(scope)}`);
}

export function deleteLinks(browsers: string[], scope: ForgottenScope): WriteStatement<SqlValue[]> {
  return writeStatement(`DELETE FROM browser_link WHERE browser_id IN ${listOf(browsers)} AND ${conditionOf(scope)}`);
}

export function deleteLinksTo(
  entityIds: string[],
  browsers: string[],
  scope: ForgottenScope,
): WriteStatement<SqlValue[]> {
  return writeStatement(`DELETE FROM browser_link
    WHERE browser_id IN ${listOf(browsers)} AND ${conditionOf(scope)} AND entity_id IN ${listOf(entityIds)}`);
}

/** The organizations of the customers that browsers lead to. The parameters are the browsers, twice. */
export function findLedOrganizations(
  browsers: string[],
): SelectStatement<SqlValue[], { browser_id: string; organization_id: string; seen_day: number }> {
  return selectStatement(`SELECT browser_id, organization_id, MAX(scope_seen_day) AS seen_day
    FROM (${ledCustomers(`IN ${listOf(browsers)}`)}) led GROUP BY browser_id, organization_id`);
}

/** The secrets that have not been removed. */
export function findSecrets(
  browsers: string[],
): SelectStatement<SqlValue[], { entity_id: string; secret_hash: string }> {
  return selectStatement(`SELECT entity_id, secret_hash FROM customer_identity
    WHERE entity_id IN ${listOf(browsers)} AND secret_hash <> ''`);
}

/**
 * No secret has the hash `''`, so no request recognises the browsers. A browser that got a customer since a day retains
 * its secret. The parameters are the browsers, three times, and the day. `DISTINCT` creates the derived table that
 * MySQL requires in order to read the updated table.
 */
export function removeSecrets(browsers: string[]): WriteStatement<SqlValue[]> {
  return writeStatement(`UPDATE customer_identity SET secret_hash = ''
    WHERE entity_id IN ${listOf(browsers)} AND secret_hash <> '' AND entity_id NOT IN (
      SELECT browser_id FROM (SELECT DISTINCT browser_id FROM (${ledCustomers(`IN ${listOf(browsers)}`)}) led
        WHERE scope_seen_day >= ?) recent)`);
}

export const RESTORE_SECRET = writeStatement<[secretHash: string, browserId: string]>(
  "UPDATE customer_identity SET secret_hash = ? WHERE entity_id = ? AND secret_hash = ''",
);
