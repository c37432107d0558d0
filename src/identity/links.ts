import type { EntityManager } from 'typeorm';
import { revokedAmong } from '../access-token/ended-statement.js';
import { MAX_ANCESTORS, type RevocableClaims, type TokenLineage } from '../access-token/token-lineage.js';
import { insertRowsIn, selectIn, writeIn } from '../platform/database/in-transaction.js';
import { type SqlValue, sqlFlag } from '../platform/database/sql-dialect.js';
import {
  type EntityRow,
  insertStatement,
  type NotNull,
  selectStatement,
  writeStatement,
} from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { BrowserLink, LinkAncestor } from './browser-link.entity.js';
import type { IdentityScope } from './customer.js';
import { LAST_DAY_OF_LINK } from './link-lifetime.js';

/** The lineage of the tokens that a link from a transfer gives, without the generation of the customer. */
export type LinkLineage = Omit<TokenLineage, 'gen'>;

/**
 * Whether a link has ended by an erasure or by a higher generation of its customer. A link from a transfer also ends
 * with its ancestors and its agent (`claimsOfLink`).
 */
export const LINK_HAS_ENDED = `(customer.erased_at IS NOT NULL OR customer.link_generation > link.generation
  OR (link.origin = 'transfer' AND customer.generation > link.generation))`;

/** 0 only for a link with a customer that has not ended. */
export const HAS_ENDED_FLAG = `CASE WHEN NOT ${LINK_HAS_ENDED} THEN 0 ELSE 1 END AS has_ended`;

/**
 * Whether a link leads to its customer, for statements about many links. Its parameter is the day of today. Links whose
 * agent has ended remain (`Denylist.withoutEndedAgents`).
 */
export const LINK_LEADS = `(link.organization_id IS NOT NULL AND NOT ${LINK_HAS_ENDED}
  AND ? <= ${LAST_DAY_OF_LINK}
  AND NOT ${revokedAmong(
    'link_ancestor ancestor',
    'ancestor.ancestor_id',
    'ancestor.entity_id = link.entity_id AND ancestor.browser_id = link.browser_id',
  )})`;

/** A link with the ids of its browser, customer and scope. */
export type LinkRow = NotNull<
  EntityRow<
    BrowserLink,
    'browser_id' | 'entity_id' | 'organization_id' | 'group_id' | 'origin' | 'began_in' | 'generation' | 'seen_day'
  >
> &
  EntityRow<BrowserLink, 'signed_in_until' | 'root' | 'lineage'>;

export type LinkKey = Pick<LinkRow, 'browser_id' | 'entity_id'>;

const LINK_COLUMNS = [
  'browser_id',
  'entity_id',
  'organization_id',
  'group_id',
  'origin',
  'began_in',
  'generation',
  'seen_day',
  'signed_in_until',
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

type LinkContent = Pick<LinkRow, 'origin' | 'generation' | 'seen_day'> &
  Partial<Pick<LinkRow, 'signed_in_until' | 'root' | 'lineage'>>;

/** A link that begins in a browser. */
export function newLink(browserId: string, customer: LinkedCustomer, content: LinkContent): LinkRow {
  const { entityId, organizationId, groupId } = customer;
  return {
    ...{ browser_id: browserId, entity_id: entityId, organization_id: organizationId, group_id: groupId },
    ...{ began_in: browserId, signed_in_until: null, root: null, lineage: null },
    ...content,
  };
}

interface LinkedCustomer extends IdentityScope {
  entityId: string;
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

/** The links of browsers that are in an organization, ended ones too. `leads` is 0 or 1, by `LINK_LEADS`. */
export async function linksOf(
  manager: EntityManager,
  browserIds: string[],
  today: number,
): Promise<(LinkRow & { leads: number })[]> {
  const list = valueList(browserIds);
  const find = selectStatement<SqlValue[], LinkRow & { leads: number }>(
    `SELECT ${LINK_COLUMNS.map((column) => `link.${column}`).join(', ')}, ${sqlFlag(LINK_LEADS)} AS leads
      FROM browser_customer link JOIN customer ON customer.entity_id = link.entity_id
      WHERE link.browser_id IN (${placeholdersFor(list)}) AND link.organization_id IS NOT NULL`,
  );
  return selectIn(manager, find, [today, ...list]);
}

/** Lets links lead nowhere. Their rows stay, because their customers' ids may be in cookies. */
const UNLINK = 'organization_id = NULL, group_id = NULL, root = NULL, lineage = NULL';

/** The number of links that one statement names. It deletes at most 1,000 ancestors: those of the code, and the redemption. */
export const LINKS_PER_STATEMENT_COUNT = Math.floor(1_000 / (MAX_ANCESTORS + 1));

/**
 * Lets these links lead nowhere. Each statement names the links by their keys.
 *
 * @param firstDay if given, a link that was used on this day or later stays
 */
export async function unlink(manager: EntityManager, links: LinkKey[], firstDay?: number): Promise<void> {
  const ofIdle = firstDay === undefined ? '' : ' AND seen_day < ?';
  for (const portion of portionsOf(links, LINKS_PER_STATEMENT_COUNT)) {
    const { condition, keys } = conditionFor(portion);
    const end = writeStatement<SqlValue[]>(`UPDATE browser_customer SET ${UNLINK} WHERE (${condition})${ofIdle}`);
    await writeIn(manager, end, firstDay === undefined ? keys : [...keys, firstDay]);
  }
  await deleteUnusedAncestors(manager, links);
}

/** The number of links that one statement reads. */
const LINKS_PER_SELECT_COUNT = 1_000;

/**
 * Lets the links of browsers or customers lead nowhere that were not used since a day. A visit that notes its day at the
 * same time waits, and then finds no link.
 */
export async function unlinkIdle(
  manager: EntityManager,
  column: 'browser_id' | 'entity_id',
  ids: string[],
  firstDay: number,
): Promise<void> {
  const list = valueList(ids);
  const findIdle = selectStatement<SqlValue[], LinkKey>(
    `SELECT browser_id, entity_id FROM browser_customer
      WHERE ${column} IN (${placeholdersFor(list)}) AND organization_id IS NOT NULL AND seen_day < ?
      LIMIT ${LINKS_PER_SELECT_COUNT}`,
  );
  let found: LinkKey[];
  do {
    found = await selectIn(manager, findIdle, [...list, firstDay]);
    await unlink(manager, found, firstDay);
  } while (found.length === LINKS_PER_SELECT_COUNT);
}

/** The customers of links, by the browser in which the links began. */
export function entityIdsByBeginning(links: Pick<LinkRow, 'entity_id' | 'began_in'>[]): Map<string, string[]> {
  const byBeginning = new Map<string, string[]>();
  for (const { began_in, entity_id } of links)
    byBeginning.set(began_in, [...(byBeginning.get(began_in) ?? []), entity_id]);
  return byBeginning;
}

/** Ends all links to these customers that began in one browser. @returns these browsers */
export async function unlinkCopies(manager: EntityManager, entityIds: string[], beganIn: string): Promise<string[]> {
  const browserIds = new Set<string>();
  for (const portion of portionsOf(entityIds)) {
    const list = valueList(portion);
    const find = selectStatement<string[], LinkKey>(
      `SELECT browser_id, entity_id FROM browser_customer
        WHERE entity_id IN (${placeholdersFor(list)}) AND began_in = ? AND organization_id IS NOT NULL`,
    );
    const found = await selectIn(manager, find, [...list, beganIn]);
    await unlink(manager, found);
    for (const { browser_id } of found) browserIds.add(browser_id);
  }
  return [...browserIds];
}

/** Deletes the ancestors of those of the links that lead nowhere any more. */
async function deleteUnusedAncestors(manager: EntityManager, links: LinkKey[]): Promise<void> {
  for (const portion of portionsOf(links, LINKS_PER_STATEMENT_COUNT)) {
    const { condition, keys } = conditionFor(portion);
    const deleteUnused = writeStatement<string[]>(
      `DELETE FROM link_ancestor WHERE (${condition})
        AND NOT EXISTS (SELECT 1 FROM browser_customer link WHERE link.browser_id = link_ancestor.browser_id
          AND link.entity_id = link_ancestor.entity_id AND link.lineage IS NOT NULL)`,
    );
    await writeIn(manager, deleteUnused, keys);
  }
}

/** The condition that selects links by their keys, so that a statement reads no other links of a browser or customer. */
function conditionFor(links: LinkKey[]): { condition: string; keys: string[] } {
  const list = valueList(links);
  return {
    condition: list.map(() => '(browser_id = ? AND entity_id = ?)').join(' OR '),
    keys: list.flatMap(({ browser_id, entity_id }) => [browser_id, entity_id]),
  };
}

const LOCK_BROWSER = writeStatement<[browserId: string, secretHash: string]>(
  'UPDATE browser SET version = version + 1 WHERE browser_id = ? AND secret_hash = ?',
);

/** Changes the row of a browser, so that transactions about one browser follow each other. False without its secret. */
export async function lockBrowser(
  manager: EntityManager,
  { browserId, secretHash }: { browserId: string; secretHash: string },
): Promise<boolean> {
  return (await writeIn(manager, LOCK_BROWSER, [browserId, secretHash])) > 0;
}

const RAISE_VERSIONS = {
  browser: 'UPDATE browser SET version = version + 1 WHERE browser_id IN',
  customer: 'UPDATE customer SET version = version + 1 WHERE entity_id IN',
};

/**
 * Raises the versions of rows, so that of two transactions which decide by the same browser or customer the second one
 * waits for the first one, or is repeated. On a cluster it is repeated, because a lock of another node does not count.
 */
export function raiseVersions(
  manager: EntityManager,
  table: keyof typeof RAISE_VERSIONS,
  ids: string[],
): Promise<void> {
  return writeToEach(manager, RAISE_VERSIONS[table], ids);
}

/** The caller has raised the versions of the browsers. */
export function removeSecrets(manager: EntityManager, browserIds: string[]): Promise<void> {
  return writeToEach(manager, "UPDATE browser SET secret_hash = '' WHERE browser_id IN", browserIds);
}

async function writeToEach(manager: EntityManager, beginning: string, ids: string[]): Promise<void> {
  for (const portion of portionsOf([...new Set(ids)].sort())) {
    const list = valueList(portion);
    await writeIn(manager, writeStatement<string[]>(`${beginning} (${placeholdersFor(list)})`), list);
  }
}
