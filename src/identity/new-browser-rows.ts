import type { Database } from '../platform/database/database.js';
import type { SqlValue } from '../platform/database/sql-value.js';
import { selectStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { dayOf } from '../platform/day.js';
import { sha256 } from '../platform/secret.js';
import { INSERT } from './customer-statements.js';
import { type LedCustomer, ledCustomers } from './led-customers.js';
import { credentialHash } from './link-credential.entity.js';
import {
  DELETE_ANCESTORS,
  DELETE_BROWSER_OF_LINKS,
  DELETE_CREDENTIALS,
  DELETE_LINK_OF_SCOPE,
  DELETE_LINKS_OF_BROWSER,
  DELETE_ORIGIN,
  INSERT_ANCESTOR,
  INSERT_CREDENTIAL,
  INSERT_LINK,
  INSERT_ORIGIN,
} from './link-statements.js';

interface NewBrowser {
  browserId: string;
  secret: string;
  now: number;
  links: LedCustomer[];
  /** The redemption, and the tokens and families that its link descends from. */
  attempt: string;
  ancestors: string[];
  /** The earlier browser. */
  madeFrom?: string;
}

/** The browser's row is the first, because the purge finds the other rows of a failed attempt by it. */
export async function insertNewBrowser(database: Database, browser: NewBrowser): Promise<void> {
  const { browserId, secret, now, links, attempt, ancestors, madeFrom } = browser;
  const row = [browserId, browserId, null, null, sha256(secret), dayOf(now), null, new Date(now)] as const;
  await database.insert(INSERT, [...row]);
  const ids = new Set(links.map(({ entity_id }) => entity_id));
  await allDone([
    ...links.map((each) => database.insert(INSERT_LINK, linkRow(each, browserId))),
    ...[...ids].map((id) => database.insert(INSERT_CREDENTIAL, [credentialHash(id, secret), browserId])),
    ...ancestors.map((id) => database.insert(INSERT_ANCESTOR, [attempt, id])),
    madeFrom === undefined ? undefined : database.insert(INSERT_ORIGIN, [browserId, madeFrom]),
  ]);
}

/** Deletes the browser's row last. */
export async function deleteNewBrowser(
  database: Database,
  browserId: string,
  attempt: string | undefined,
): Promise<void> {
  for (const statement of [DELETE_LINKS_OF_BROWSER, DELETE_CREDENTIALS, DELETE_ORIGIN])
    await database.executeIdempotent(statement, [browserId]);
  if (attempt !== undefined) await database.executeIdempotent(DELETE_ANCESTORS, [attempt]);
  await database.executeIdempotent(DELETE_BROWSER_OF_LINKS, [browserId]);
}

/** Deletes the copies of links that have ended in the earlier browser since they were read (protocol §4.13). */
export async function deleteEndedCopies(
  database: Database,
  earlierId: string,
  browserId: string,
  copies: LedCustomer[],
): Promise<void> {
  const led = new Set<string>();
  for (const portion of portionsOf(copies)) {
    const ids = valueList(portion.map(({ entity_id }) => entity_id));
    const findLed = selectStatement<SqlValue[], Pick<LedCustomer, 'organization_id' | 'group_id' | 'entity_id'>>(
      `SELECT organization_id, group_id, entity_id FROM (${ledCustomers('= ?')}) led
        WHERE entity_id IN (${placeholdersFor(ids)})`,
    );
    for (const row of await database.select(findLed, [earlierId, earlierId, ...ids])) led.add(keyOf(row));
  }
  for (const copy of copies) {
    if (led.has(keyOf(copy))) continue;
    const { organization_id, group_id, entity_id } = copy;
    await database.executeIdempotent(DELETE_LINK_OF_SCOPE, [browserId, organization_id, group_id, entity_id]);
  }
}

function keyOf(led: Pick<LedCustomer, 'organization_id' | 'group_id' | 'entity_id'>): string {
  return [led.organization_id, led.group_id, led.entity_id].join();
}

/** Waits for all INSERTs, so that the deletion finds their rows if one of them has failed. */
async function allDone(inserts: (Promise<void> | undefined)[]): Promise<void> {
  const results = await Promise.allSettled(inserts);
  const failed = results.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined;
  if (failed) throw failed.reason;
}

function linkRow(led: LedCustomer, browserId: string) {
  const { organization_id, group_id, entity_id, generation, scope_seen_day } = led;
  const { redemption, lineage, agent_id, agent_generation } = led;
  const scope = [browserId, organization_id, group_id] as const;
  const origin = [redemption, lineage, agent_id, agent_generation] as const;
  return [...scope, entity_id, generation, scope_seen_day, ...origin] as [
    ...typeof scope,
    string,
    number,
    number,
    ...typeof origin,
  ];
}
