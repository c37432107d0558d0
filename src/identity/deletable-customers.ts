/**
 * The secret hash of a browser that is being deleted. No secret has this hash, so no request recognises the browser.
 */
export const NO_SECRET = '';

/** A generation is never purged: without the row, the ended tokens of its customer would be valid again. */
export const HAS_GENERATION = 'COALESCE(generation, 0) > 0';

/** An erased or purged customer. Only its id, its browser and its generation remain. */
export const IS_ERASED = 'organization_id IS NULL';

/**
 * The conditions of the purge again, because a customer may have changed since the purge selected its browser. Links
 * that are older than `day` are idle in every organization and lead to no customer.
 *
 * @param day the first day that is not idle
 */
export const isDeletable = (day: number) =>
  `NOT (${HAS_GENERATION}) AND COALESCE(last_token_day, 0) < ${day} AND NOT EXISTS (SELECT 1 FROM browser_link
    WHERE browser_link.entity_id = customer_identity.entity_id AND browser_link.scope_seen_day >= ${day})`;
