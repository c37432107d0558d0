import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { ledCustomers } from './led-customers.js';

/** A browser, and the browsers that it was made from, at any depth. */
export const FIND_BROWSER_AND_ORIGINS = selectStatement<[browserId: string], { browser_id: string }>(
  `WITH RECURSIVE line (browser_id) AS (
      SELECT entity_id FROM customer_identity WHERE entity_id = ?
      UNION SELECT origin.made_from FROM line JOIN browser_origin origin ON origin.browser_id = line.browser_id)
    SELECT browser_id FROM line`,
);

/** The organizations of the customers that a browser leads to. The parameter is the browser, twice. */
export const FIND_LED_ORGANIZATIONS = selectStatement<
  [browserId: string, browserId: string],
  { organization_id: string; seen_day: number }
>(
  `SELECT organization_id, MAX(scope_seen_day) AS seen_day FROM (${ledCustomers('= ?')}) led
    GROUP BY organization_id`,
);

type Organization = [browserId: string, organizationId: string];
type Group = [...Organization, groupId: string];

const UNLINK =
  'UPDATE customer_identity SET unlinked_at = ? WHERE unlinked_at IS NULL AND browser_id = ? AND organization_id = ?';
const DELETE_LINKS = 'DELETE FROM browser_link WHERE browser_id = ? AND organization_id = ?';

/** The browser no longer leads to the customers of its own rows. The rows stay, because they recognise the browser. */
export const UNLINK_ORGANIZATION = writeStatement<[now: Date, ...Organization]>(UNLINK);
export const UNLINK_GROUP = writeStatement<[now: Date, ...Group]>(`${UNLINK} AND group_id = ?`);
export const UNLINK_ORGANIZATION_LINKS = writeStatement<Organization>(DELETE_LINKS);
export const UNLINK_GROUP_LINKS = writeStatement<Group>(`${DELETE_LINKS} AND group_id = ?`);

/** No secret has the hash `''`, so no request recognises the browser. */
export const REMOVE_SECRET = writeStatement<[browserId: string, secretHash: string]>(
  "UPDATE customer_identity SET secret_hash = '' WHERE entity_id = ? AND secret_hash = ?",
);

export const RESTORE_SECRET = writeStatement<[secretHash: string, browserId: string]>(
  "UPDATE customer_identity SET secret_hash = ? WHERE entity_id = ? AND secret_hash = ''",
);
