import type { Database } from '../platform/database/database.js';
import {
  insertIgnoreStatement,
  insertStatement,
  selectStatement,
  writeStatement,
} from '../platform/database/statement.js';
import { BrowserLink } from './browser-link.entity.js';
import { BrowserOrigin } from './browser-origin.entity.js';
import { LinkAncestor } from './link-ancestor.entity.js';
import { LinkCredential } from './link-credential.entity.js';

const NEW_LINK = {
  into: BrowserLink,
  columns: [
    'browser_id',
    'organization_id',
    'group_id',
    'entity_id',
    'generation',
    'scope_seen_day',
    'redemption',
    'lineage',
    'agent_id',
    'agent_generation',
  ],
} as const;

export const INSERT_LINK = insertStatement({ ...NEW_LINK, batch: true });
export const INSERT_LINK_IF_ABSENT = insertIgnoreStatement(NEW_LINK);

/** The redemption of the link from a browser to a customer, if the link came from a transfer. */
export const FIND_REDEMPTION = selectStatement<
  [browserId: string, organizationId: string, groupId: string, entityId: string],
  { redemption: string }
>(`SELECT redemption FROM browser_link
  WHERE browser_id = ? AND organization_id = ? AND group_id = ? AND entity_id = ? AND redemption IS NOT NULL`);

/** Leads a scope to a new customer, unless another request has replaced the link. */
export const REPLACE_LINK = writeStatement<
  [entityId: string, today: number, browserId: string, organizationId: string, groupId: string, replacedId: string]
>(`UPDATE browser_link SET entity_id = ?, generation = 0, scope_seen_day = ?,
    redemption = NULL, lineage = NULL, agent_id = NULL, agent_generation = NULL
  WHERE browser_id = ? AND organization_id = ? AND group_id = ? AND entity_id = ?`);

export const INSERT_CREDENTIAL = insertStatement({
  into: LinkCredential,
  columns: ['hash', 'browser_id'],
  batch: true,
});

export const INSERT_ANCESTOR = insertStatement({
  into: LinkAncestor,
  columns: ['redemption', 'ancestor_id'],
  batch: true,
});

export const INSERT_ORIGIN = insertStatement({ into: BrowserOrigin, columns: ['browser_id', 'made_from'] });

/** The condition of ancestors that are not needed any more. */
export const NO_LINK_HAS_REDEMPTION =
  'NOT EXISTS (SELECT 1 FROM browser_link WHERE browser_link.redemption = link_ancestor.redemption)';

/** Deletes the ancestors of redemptions that no link names any more. */
export const DELETE_UNUSED_ANCESTORS = writeStatement<[redemption: string]>(
  `DELETE FROM link_ancestor WHERE redemption = ? AND ${NO_LINK_HAS_REDEMPTION}`,
);

/** The redemption of a browser's link to a customer. */
export const FIND_REDEMPTION_OF_LINK = selectStatement<[browserId: string, entityId: string], { redemption: string }>(
  'SELECT redemption FROM browser_link WHERE browser_id = ? AND entity_id = ? AND redemption IS NOT NULL',
);

/** Deletes the ancestors of deleted links. Another link may have the same redemption. */
export async function deleteUnusedAncestors(database: Database, links: { redemption: string }[]): Promise<void> {
  for (const redemption of new Set(links.map((link) => link.redemption)))
    await database.executeIdempotent(DELETE_UNUSED_ANCESTORS, [redemption]);
}

export const DELETE_LINKS_OF_BROWSER = writeStatement<[browserId: string]>(
  'DELETE FROM browser_link WHERE browser_id = ?',
);

export const DELETE_LINK_OF_SCOPE = writeStatement<
  [browserId: string, organizationId: string, groupId: string, entityId: string]
>('DELETE FROM browser_link WHERE browser_id = ? AND organization_id = ? AND group_id = ? AND entity_id = ?');

export const DELETE_CREDENTIAL = writeStatement<[hash: string]>('DELETE FROM link_credential WHERE hash = ?');

export const DELETE_CREDENTIALS = writeStatement<[browserId: string]>(
  'DELETE FROM link_credential WHERE browser_id = ?',
);

export const DELETE_ORIGIN = writeStatement<[browserId: string]>('DELETE FROM browser_origin WHERE browser_id = ?');

/** Deletes the row of a browser that was created for links and owns no customer. */
export const DELETE_BROWSER_OF_LINKS = writeStatement<[browserId: string]>(
  'DELETE FROM customer_identity WHERE entity_id = ? AND organization_id IS NULL',
);

export const DELETE_ANCESTORS = writeStatement<[redemption: string]>('DELETE FROM link_ancestor WHERE redemption = ?');
