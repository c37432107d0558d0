import type { EntityManager } from 'typeorm';
import type { RevocableClaims, TokenLineage } from '../access-token/token-lineage.js';
import type { EntityRow, NotNull } from '../platform/database/entity-row.js';
import { insertRowsIn, selectIn, writeIn } from '../platform/database/in-transaction.js';
import { insertStatement, selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { BrowserLink } from './browser-link.entity.js';
import { LinkAncestor } from './link-ancestor.entity.js';

/** The lineage of the tokens that a link from a transfer gives, without the generation of the customer. */
export type LinkLineage = Omit<TokenLineage, 'gen'>;

/**
 * Whether a link has ended by an erasure or by a higher generation of its customer. A link from a transfer also ends
 * with its ancestors and its agent (`claimsOfLink`).
 */
export const LINK_HAS_ENDED = `(customer.erased_at IS NOT NULL OR customer.link_generation > link.generation
  OR (link.origin = 'transfer' AND customer.generation > link.generation))`;

/** A link with the ids of its browser, customer and scope. */
export type LinkRow = NotNull<
  EntityRow<
    BrowserLink,
    'browser_id' | 'entity_id' | 'organization_id' | 'group_id' | 'origin' | 'began_in' | 'generation' | 'seen_day'
  >
> &
  EntityRow<BrowserLink, 'signed_in_day' | 'root' | 'lineage'>;

const LINK_COLUMNS = [
  'browser_id',
  'entity_id',
  'organization_id',
  'group_id',
  'origin',
  'began_in',
  'generation',
  'seen_day',
  'signed_in_day',
  'root',
  'lineage',
] as const;

const INSERT_LINK = insertStatement({ into: BrowserLink, columns: LINK_COLUMNS });
const INSERT_ANCESTOR = insertStatement({ into: LinkAncestor, columns: ['browser_id', 'entity_id', 'ancestor_id'] });

/** The claims with which a link from a transfer ends; `undefined` for other links. */
export function claimsOfLink({
  entity_id: sub,
  generation: gen,
  lineage,
}: Pick<LinkRow, 'entity_id' | 'generation' | 'lineage'>): RevocableClaims | undefined {
  if (lineage === null) return undefined;
  const stored = JSON.parse(lineage) as LinkLineage;
  // the redemption, so that a replay ends the link
  const jti = stored.ancestors?.at(-1) ?? '';
  return { jti, sub, client_id: '', iat: 0, aud: 'customer-api', gen, ...stored };
}

/** A link from a browser to a customer that it has just created. */
export function ownLink(browserId: string, entityId: string, scope: LinkScope, seenDay: number): LinkRow {
  return {
    ...{ browser_id: browserId, entity_id: entityId, organization_id: scope.organizationId, group_id: scope.groupId },
    ...{ origin: 'own', began_in: browserId, generation: 0, seen_day: seenDay },
    ...{ signed_in_day: null, root: null, lineage: null },
  };
}

interface LinkScope {
  organizationId: string;
  groupId: string;
}

export async function insertLinks(manager: EntityManager, links: LinkRow[]): Promise<void> {
  const rows = links.map((link) => LINK_COLUMNS.map((column) => link[column]));
  await insertRowsIn(manager, INSERT_LINK, rows as Parameters<typeof insertRowsIn<never>>[2]);
  const ancestors = links.flatMap(({ browser_id, entity_id, lineage }) => {
    const ids: string[] = lineage === null ? [] : ((JSON.parse(lineage) as LinkLineage).ancestors ?? []);
    return [...new Set(ids)].map((id): [string, string, string] => [browser_id, entity_id, id]);
  });
  await insertRowsIn(manager, INSERT_ANCESTOR, ancestors);
}

/** Links of browsers that have not ended by a generation or an erasure. */
export async function linksOf(manager: EntityManager, browserIds: string[]): Promise<LinkRow[]> {
  const links: LinkRow[] = [];
  for (const ids of portionsOf(browserIds)) {
    const list = valueList(ids);
    const find = selectStatement<string[], LinkRow>(
      `SELECT ${LINK_COLUMNS.map((column) => `link.${column}`).join(', ')}
        FROM browser_customer link JOIN customer ON customer.entity_id = link.entity_id
        WHERE link.browser_id IN (${placeholdersFor(list)}) AND link.organization_id IS NOT NULL
          AND NOT ${LINK_HAS_ENDED}`,
    );
    links.push(...(await selectIn(manager, find, list)));
  }
  return links;
}

/** Lets links lead nowhere. Their rows stay, because their customers' ids may be in cookies. */
export const UNLINK = 'organization_id = NULL, group_id = NULL, root = NULL, lineage = NULL, signed_in_day = NULL';

const UNLINK_ONE = writeStatement<[browserId: string, entityId: string]>(
  `UPDATE browser_customer SET ${UNLINK} WHERE browser_id = ? AND entity_id = ?`,
);

export async function unlink(manager: EntityManager, browserId: string, entityId: string): Promise<void> {
  await writeIn(manager, UNLINK_ONE, [browserId, entityId]);
  await deleteUnusedAncestors(manager, [entityId]);
}

/** Ends the links to these customers that began in one browser, in whichever browser they are. @returns these browsers */
export async function unlinkCopies(manager: EntityManager, entityIds: string[], beganIn: string): Promise<string[]> {
  const browserIds = new Set<string>();
  for (const portion of portionsOf(entityIds)) {
    const ids = valueList(portion);
    const condition = `entity_id IN (${placeholdersFor(ids)}) AND began_in = ?`;
    const find = selectStatement<string[], { browser_id: string }>(
      `SELECT DISTINCT browser_id FROM browser_customer WHERE ${condition} AND organization_id IS NOT NULL`,
    );
    const found = (await selectIn(manager, find, [...ids, beganIn])).map(({ browser_id }) => browser_id);
    const end = writeStatement<string[]>(`UPDATE browser_customer SET ${UNLINK} WHERE ${condition}`);
    await writeIn(manager, end, [...ids, beganIn]);
    await deleteUnusedAncestors(manager, ids);
    for (const id of found) browserIds.add(id);
  }
  return [...browserIds];
}

/** Deletes the ancestors of links to these customers that lead nowhere any more. @param entityIds a list of `valueList` */
export async function deleteUnusedAncestors(manager: EntityManager, entityIds: string[]): Promise<void> {
  const deleteUnused = writeStatement<string[]>(
    `DELETE FROM link_ancestor WHERE entity_id IN (${placeholdersFor(entityIds)})
      AND NOT EXISTS (SELECT 1 FROM browser_customer link WHERE link.browser_id = link_ancestor.browser_id
        AND link.entity_id = link_ancestor.entity_id AND link.lineage IS NOT NULL)`,
  );
  await writeIn(manager, deleteUnused, entityIds);
}

const RAISE_VERSIONS = {
  browser: 'UPDATE browser SET version = version + 1 WHERE browser_id IN',
  customer: 'UPDATE customer SET version = version + 1 WHERE entity_id IN',
};

/**
 * Raises the versions of rows, so that of two transactions which decide by the same browser or customer the second one
 * waits for the first one, or is repeated. On a cluster it is repeated, because a lock of another node does not count.
 */
export async function raiseVersions(
  manager: EntityManager,
  table: keyof typeof RAISE_VERSIONS,
  ids: string[],
): Promise<void> {
  for (const portion of portionsOf([...new Set(ids)].sort())) {
    const list = valueList(portion);
    await writeIn(manager, writeStatement<string[]>(`${RAISE_VERSIONS[table]} (${placeholdersFor(list)})`), list);
  }
}
