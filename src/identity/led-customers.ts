import type { EntityRow, NotNull } from '../platform/database/entity-row.js';
import type { SqlValue } from '../platform/database/sql-value.js';
import { type SelectStatement, selectStatement } from '../platform/database/statement.js';
import type { BrowserLink } from './browser-link.entity.js';
import { LINK_HAS_ENDED } from './recognise-statements.js';

/** A customer that a browser leads to, in the columns of a link. */
export type LedCustomer = NotNull<
  EntityRow<BrowserLink, 'entity_id' | 'organization_id' | 'group_id' | 'generation' | 'scope_seen_day'>
> &
  EntityRow<BrowserLink, 'redemption' | 'lineage' | 'agent_id' | 'agent_generation'>;

/**
 * Declares a SELECT of all customers that browsers lead to: of links that have not ended, and of own rows that no link
 * replaces.
 *
 * @param browsers the condition on `browser_id`, which the statement contains twice
 * @param rest the order and limit of the rows
 */
export function selectLedCustomers(browsers: string, rest: string): SelectStatement<SqlValue[], LedCustomer> {
  return selectStatement(`${ledCustomers(browsers)} ${rest}`);
}

/** The SELECT of `selectLedCustomers` without an order. */
export function ledCustomers(browsers: string): string {
  return `SELECT own.browser_id, own.entity_id, own.organization_id, own.group_id, 0 AS generation,
      COALESCE(own.scope_seen_day, browser.last_seen_day) AS scope_seen_day,
      NULL AS redemption, NULL AS lineage, NULL AS agent_id, NULL AS agent_generation
    FROM customer_identity own JOIN customer_identity browser ON browser.entity_id = own.browser_id
    WHERE own.browser_id ${browsers} AND own.organization_id IS NOT NULL
      AND own.unlinked_at IS NULL AND COALESCE(own.link_generation, 0) = 0
      AND NOT EXISTS (SELECT 1 FROM browser_link WHERE browser_link.browser_id = own.browser_id
        AND browser_link.organization_id = own.organization_id AND browser_link.group_id = own.group_id)
    UNION ALL SELECT link.browser_id, link.entity_id, link.organization_id, link.group_id, link.generation, link.scope_seen_day,
      link.redemption, link.lineage, link.agent_id, link.agent_generation
    FROM browser_link link JOIN customer_identity linked ON linked.entity_id = link.entity_id
    WHERE link.browser_id ${browsers} AND NOT (${LINK_HAS_ENDED})`;
}
