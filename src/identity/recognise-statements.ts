import type { EntityRow, NotNull, OrNull } from '../platform/database/entity-row.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import type { BrowserLink } from './browser-link.entity.js';
import type { CustomerIdentity } from './customer-identity.entity.js';
import { MAX_CANDIDATES } from './identity-cookies.js';

/** A browser, and the customer or the ended link that it has in the requested scope, if there is one. */
export type RecognisedRow = NotNull<EntityRow<CustomerIdentity, 'last_seen_day'>> &
  EntityRow<CustomerIdentity, 'secret_hash'> & { browser_id: string } & OrNull<
    EntityRow<CustomerIdentity, 'entity_id' | 'generation' | 'scope_seen_day'>
  > &
  EntityRow<BrowserLink, 'lineage'> & {
    /** The customer of the browser link; `null` if the browser's own row leads to the customer. */
    linked_id: string | null;
    /** 1 if the link or the own row leads to no customer any more. */
    has_ended: number;
  };

/**
 * Whether a link has ended: its customer was erased or has a higher generation of links, a token that it descends from
 * was revoked, or its agent has a higher generation. `linked` is the row of the customer.
 */
export const LINK_HAS_ENDED = `linked.organization_id IS NULL
  OR COALESCE(linked.link_generation, 0) > link.generation
  OR (link.redemption IS NOT NULL AND EXISTS (
    SELECT 1 FROM link_ancestor ancestor JOIN revocation ON revocation.value = ancestor.ancestor_id
    WHERE ancestor.redemption = link.redemption AND revocation.kind IN ('jti', 'family')))
  OR (link.agent_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM agent WHERE id = link.agent_id AND COALESCE(generation, 0) <= link.agent_generation))`;

const OWN_HAS_ENDED = '(own.unlinked_at IS NOT NULL OR COALESCE(own.link_generation, 0) > 0)';

const COLUMNS = [
  'browser.entity_id AS browser_id',
  'browser.secret_hash',
  'browser.last_seen_day',
  'COALESCE(link.entity_id, own.entity_id) AS entity_id',
  'CASE WHEN link.entity_id IS NULL THEN own.generation ELSE linked.generation END AS generation',
  'COALESCE(link.scope_seen_day, own.scope_seen_day) AS scope_seen_day',
  'link.lineage',
  'link.entity_id AS linked_id',
  `CASE WHEN link.entity_id IS NULL THEN ${OWN_HAS_ENDED} ELSE (${LINK_HAS_ENDED}) END AS has_ended`,
];

const SCOPE_OF_BROWSER = `LEFT JOIN customer_identity own
    ON own.browser_id = browser.entity_id AND own.organization_id = ? AND own.group_id = ?
  LEFT JOIN browser_link link
    ON link.browser_id = browser.entity_id AND link.organization_id = ? AND link.group_id = ?
  LEFT JOIN customer_identity linked ON linked.entity_id = link.entity_id`;

type Scope = [organizationId: string, groupId: string, organizationId: string, groupId: string];

/**
 * Finds the browser of one id and one secret, and its customer in the requested scope. The id is in a row of the
 * browser, or `credential` is the hash of the id and the secret.
 */
export const RECOGNISE = selectStatement<[...Scope, credential: string, entityId: string], RecognisedRow>({
  columns: COLUMNS,
  from: `customer_identity browser ${SCOPE_OF_BROWSER}
    WHERE browser.entity_id = COALESCE(
      (SELECT browser_id FROM link_credential WHERE hash = ?),
      (SELECT browser_id FROM customer_identity WHERE entity_id = ?))`,
  batch: true,
});

const listOf = (count: number) => Array(count).fill('?').join();

const CANDIDATES = `(SELECT browser_id FROM customer_identity WHERE entity_id IN (${listOf(MAX_CANDIDATES)})
    UNION SELECT browser_id FROM link_credential WHERE hash IN (${listOf(MAX_CANDIDATES ** 2)})) candidate`;

/** The same for several ids and secrets. The number of placeholders is fixed, so that one prepared statement is enough. */
export const RECOGNISE_ANY = selectStatement<string[], RecognisedRow>(
  `SELECT ${COLUMNS.join(', ')} FROM ${CANDIDATES}
    JOIN customer_identity browser ON browser.entity_id = candidate.browser_id ${SCOPE_OF_BROWSER}`,
);

/**
 * Notes the day of the browser and of its first customer. Matches no row if the secret was removed in the meantime, or
 * if the customer was erased or purged.
 */
export const NOTE_BROWSER_AND_SCOPE = writeStatement<
  [today: number, today: number, browserId: string, secretHash: string]
>(`UPDATE customer_identity SET last_seen_day = ?, scope_seen_day = ?
  WHERE entity_id = ? AND secret_hash = ? AND organization_id IS NOT NULL`);

/** Matches no row if the browser's secret was removed in the meantime. */
export const NOTE_BROWSER = writeStatement<[today: number, browserId: string, secretHash: string]>(
  'UPDATE customer_identity SET last_seen_day = ? WHERE entity_id = ? AND secret_hash = ?',
);

/** Matches no row if the customer was erased or purged in the meantime. */
export const NOTE_SCOPE = writeStatement<[today: number, entityId: string]>(
  'UPDATE customer_identity SET scope_seen_day = ? WHERE entity_id = ? AND organization_id IS NOT NULL',
);

export const NOTE_LINK = writeStatement<
  [today: number, browserId: string, organizationId: string, groupId: string, entityId: string]
>(
  `UPDATE browser_link SET scope_seen_day = ?
    WHERE browser_id = ? AND organization_id = ? AND group_id = ? AND entity_id = ?`,
);
