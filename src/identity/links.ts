import { type EntityManager, In } from 'typeorm';
import { agentEndedSince, agentOf, revokedAmong } from '../access-token/ended-statement.js';
import { MAX_ANCESTORS, type RevocableClaims, type TokenLineage } from '../access-token/token-lineage.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { BrowserLink, KnownBrowser, LinkAncestor } from './browser-link.entity.js';
import type { IdentityScope } from './customer.js';
import { CustomerIdentity } from './customer-identity.entity.js';
import { LAST_DAY_OF_LINK, lastDayIfIdle } from './link-lifetime.js';

/** The lineage of the tokens that a link from a transfer gives, without the generation of the customer. */
export type LinkLineage = Omit<TokenLineage, 'gen'>;

/** Whether a link has ended by an erasure or by a higher generation of its customer. */
export const LINK_HAS_ENDED = `(customer.erased_at IS NOT NULL OR customer.link_generation > link.generation
  OR (link.origin = 'transfer' AND customer.generation > link.generation))`;

/** 0 only for a link with a customer that has not ended. */
export const HAS_ENDED_FLAG = `CASE WHEN NOT ${LINK_HAS_ENDED} THEN 0 ELSE 1 END AS has_ended`;

/** Whether an ancestor of a link from a transfer is revoked, or its redemption. */
export const LINK_IS_REVOKED = revokedAmong(
  'link_ancestor ancestor',
  'ancestor.ancestor_id',
  'ancestor.entity_id = link.entity_id AND ancestor.browser_id = link.browser_id',
);

/** Whether a link leads to its customer, for statements about many links. @param today the parameter with the day of today */
const linkLeads = (today: string) => `(link.organization_id IS NOT NULL AND NOT ${LINK_HAS_ENDED}
  AND ${today} <= ${LAST_DAY_OF_LINK} AND NOT ${LINK_IS_REVOKED}
  AND NOT ${agentEndedSince('link.agent_id', 'link.agent_generation')})`;

export const LINK_LEADS = linkLeads('?');

export type LinkKey = Pick<BrowserLink, 'browserId' | 'entityId'>;

/** The claims with which a link from a transfer ends; `undefined` for other links. */
export function claimsOfLink({
  entityId: sub,
  generation: gen,
  lineage,
}: Pick<BrowserLink, 'entityId' | 'generation' | 'lineage'>): RevocableClaims | undefined {
  if (lineage === null) return undefined;
  const stored = JSON.parse(lineage) as LinkLineage;
  // the redemption, so that a replay ends the link
  const jti = stored.ancestors?.at(-1) ?? '';
  return { jti, sub, client_id: '', iat: 0, aud: 'customer-api', gen, ...stored };
}

/** A link that begins in a browser. */
export function newLink(
  browserId: string,
  { entityId, organizationId, groupId }: IdentityScope & { entityId: string },
  content: Pick<BrowserLink, 'origin' | 'generation' | 'seenDay'> &
    Partial<Pick<BrowserLink, 'signedInUntil' | 'root'>> & { lineage?: LinkLineage },
): BrowserLink {
  const { signedInUntil = null, root = null, lineage } = content;
  const agent = lineage && agentOf({ ...lineage, sub: entityId, aud: 'customer-api' });
  return {
    ...{ ...content, browserId, entityId, organizationId, groupId, beganIn: browserId, signedInUntil, root },
    ...{ lineage: lineage ? JSON.stringify(lineage) : null },
    ...{ agentId: agent?.sub ?? null, agentGeneration: agent?.gen ?? null },
  };
}

/** The number of rows that one statement inserts. */
const ROWS_PER_INSERT = 100;

export async function insertLinks(manager: EntityManager, links: BrowserLink[]): Promise<void> {
  for (const portion of portionsOf(links, ROWS_PER_INSERT)) await manager.insert(BrowserLink, portion);
  const ancestors = links.flatMap(({ browserId, entityId, lineage }) => {
    const ids: string[] = lineage === null ? [] : ((JSON.parse(lineage) as LinkLineage).ancestors ?? []);
    return [...new Set(ids)].map((ancestorId) => ({ browserId, entityId, ancestorId }));
  });
  for (const portion of portionsOf(ancestors, ROWS_PER_INSERT)) await manager.insert(LinkAncestor, portion);
}

/** The links with which a browser leads to customers. */
export function leadingLinksOf(manager: EntityManager, browserId: string, today: number): Promise<BrowserLink[]> {
  return manager
    .createQueryBuilder(BrowserLink, 'link')
    .innerJoin(CustomerIdentity, 'customer', 'customer.entityId = link.entityId')
    .where(`link.browserId = :browserId AND ${linkLeads(':today')}`, { browserId, today })
    .getMany();
}

/** Detaches links from their customers. Their rows stay, because their customers' ids may be in cookies. */
const UNLINK =
  'organization_id = NULL, group_id = NULL, root = NULL, lineage = NULL, agent_id = NULL, agent_generation = NULL';

/** The number of links that one statement names. It deletes at most 1,000 ancestors: those of the code, and the redemption. */
export const LINKS_PER_STATEMENT_COUNT = Math.floor(1_000 / (MAX_ANCESTORS + 1));

const isIdle = (link: string) => `${lastDayIfIdle(`${link}.seen_day`, `${link}.organization_id`)} < ?`;

/**
 * Detaches these links from their customers, and deletes their ancestors. Each statement names the links by their keys,
 * so it reads no other links of a browser or customer.
 *
 * @param idleOn if given, only links that are idle on this day are detached
 */
export async function unlink(manager: EntityManager, links: LinkKey[], idleOn?: number): Promise<void> {
  const ofIdle = idleOn === undefined ? '' : ` AND ${isIdle('browser_customer')}`;
  for (const portion of portionsOf(links, LINKS_PER_STATEMENT_COUNT)) {
    const list = valueList(portion);
    const condition = list.map(() => '(browser_id = ? AND entity_id = ?)').join(' OR ');
    const keys = list.flatMap(({ browserId, entityId }) => [browserId, entityId]);
    const end = writeStatement<SqlValue[]>(`UPDATE browser_customer SET ${UNLINK} WHERE (${condition})${ofIdle}`);
    await writeIn(manager, end, idleOn === undefined ? keys : [...keys, idleOn]);
    const deleteAncestors = writeStatement<string[]>(
      `DELETE FROM link_ancestor WHERE (${condition})
        AND NOT EXISTS (SELECT 1 FROM browser_customer link WHERE link.browser_id = link_ancestor.browser_id
          AND link.entity_id = link_ancestor.entity_id AND link.lineage IS NOT NULL)`,
    );
    await writeIn(manager, deleteAncestors, keys);
  }
}

/** The number of links that one statement reads. */
const LINKS_PER_SELECT_COUNT = 1_000;

/**
 * Lets the idle links of browsers or customers lead nowhere. A visit that notes its day at the same time waits, and then
 * finds no link.
 */
export async function unlinkIdle(
  manager: EntityManager,
  column: 'browser_id' | 'entity_id',
  ids: string[],
  today: number,
): Promise<void> {
  const list = valueList(ids);
  const findIdle = selectStatement<SqlValue[], LinkKey>(
    `SELECT link.browser_id AS browserId, link.entity_id AS entityId FROM browser_customer link
      WHERE link.${column} IN (${placeholdersFor(list)}) AND link.organization_id IS NOT NULL AND ${isIdle('link')}
      LIMIT ${LINKS_PER_SELECT_COUNT}`,
  );
  let found: LinkKey[];
  do {
    found = await selectIn(manager, findIdle, [...list, today]);
    await unlink(manager, found, today);
  } while (found.length === LINKS_PER_SELECT_COUNT);
}

/**
 * A link with the same customer and beginning as `link` that is in an organization. The conditions are the columns of an
 * index, so that the other links of the customer are not read. Sign-ins can give a customer many thousands.
 */
export const IS_COPY = `copy.entity_id = link.entity_id AND copy.organization_id = customer.organization_id
  AND copy.origin = link.origin AND copy.began_in = link.began_in`;

const COPIES = `browser_customer link JOIN customer ON customer.entity_id = link.entity_id
  JOIN browser_customer copy ON ${IS_COPY}`;

/**
 * The links of browsers to customers, and their copies. Links that are in no organization are not among them. Each
 * statement names one browser: MariaDB would read all links of the customers for two browsers.
 */
export async function copiesOf(manager: EntityManager, browserIds: string[], entityIds: string[]): Promise<LinkKey[]> {
  const copies = new Map<string, LinkKey>();
  for (const portion of portionsOf(entityIds)) {
    const customers = valueList(portion);
    const find = selectStatement<string[], LinkKey>(
      `SELECT copy.browser_id AS browserId, copy.entity_id AS entityId FROM ${COPIES}
        WHERE link.browser_id = ? AND link.entity_id IN (${placeholdersFor(customers)})`,
    );
    for (const id of browserIds)
      for (const key of await selectIn(manager, find, [id, ...customers]))
        copies.set(`${key.browserId} ${key.entityId}`, key);
  }
  return [...copies.values()];
}

/** The number of browsers that have a copy of one link. */
const MAX_COPIES = 100;

const FIND_OLDEST_COPIES = selectStatement<[browserId: string], LinkKey>(
  `SELECT MIN(copy.browser_id) AS browserId, copy.entity_id AS entityId FROM ${COPIES}
    WHERE link.browser_id = ? AND copy.browser_id <> copy.began_in
    GROUP BY copy.entity_id HAVING COUNT(*) > ${MAX_COPIES}`,
);

/** Ends the oldest copy of each link of a new browser that has too many. The caller has changed the customers' rows. */
export async function replaceOldestCopies(manager: EntityManager, browserId: string): Promise<void> {
  await unlink(manager, await selectIn(manager, FIND_OLDEST_COPIES, [browserId]));
}

/** Changes the row of a browser, so that transactions about one browser follow each other. False without its secret. */
export async function lockBrowser(
  manager: EntityManager,
  { browserId, secretHash }: Pick<KnownBrowser, 'browserId' | 'secretHash'>,
): Promise<boolean> {
  return ((await manager.increment(KnownBrowser, { browserId, secretHash }, 'version', 1)).affected ?? 0) > 0;
}

/**
 * Raises the versions of rows. If two transactions depend on the same browser or customer, the second then waits for
 * the first or is repeated. On a cluster it is repeated, because locks of other nodes have no effect.
 */
export async function raiseVersions(
  manager: EntityManager,
  table: 'browser' | 'customer',
  ids: string[],
): Promise<void> {
  for (const list of sortedLists(ids))
    if (table === 'browser') await manager.increment(KnownBrowser, { browserId: In(list) }, 'version', 1);
    else await manager.increment(CustomerIdentity, { entityId: In(list) }, 'version', 1);
}

/** The caller has raised the versions of the browsers. */
export async function removeSecrets(manager: EntityManager, browserIds: string[]): Promise<void> {
  for (const list of sortedLists(browserIds))
    await manager.update(KnownBrowser, { browserId: In(list) }, { secretHash: '' });
}

/**
 * Removes the secrets of browsers that lead to no customer. The caller must already have changed, and so locked, the
 * rows of these browsers. Therefore a parallel request that creates a customer for one of them has either finished or
 * finds no secret.
 *
 * @param browserIds at most 500
 * @returns the browsers that lead to no customer
 */
export async function removeSecretsOfUnlinked(
  manager: EntityManager,
  browserIds: string[],
  today: number,
): Promise<string[]> {
  const list = valueList(browserIds);
  const findLeading = selectStatement<SqlValue[], { browser_id: string }>(
    `SELECT DISTINCT link.browser_id FROM browser_customer link JOIN customer ON customer.entity_id = link.entity_id
      WHERE link.browser_id IN (${placeholdersFor(list)}) AND ${LINK_LEADS}`,
  );
  const rows = await selectIn(manager, findLeading, [...list, today]);
  const leading = new Set(rows.map(({ browser_id }) => browser_id));
  const unlinked = browserIds.filter((id) => !leading.has(id));
  await removeSecrets(manager, unlinked);
  return unlinked;
}

function sortedLists(ids: string[]): string[][] {
  return [...portionsOf([...new Set(ids)].sort())].map((portion) => valueList(portion));
}
