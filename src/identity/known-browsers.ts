import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import type { EntityRow, NotNull, OrNull } from '../platform/database/entity-row.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { equalInConstantTime, sha256 } from '../platform/secret.js';
import type { CustomerIdentity } from './customer-identity.entity.js';
import { type CandidateCredentials, MAX_CANDIDATES } from './identity-cookies.js';

/** The organization and group that an identity belongs to. A browser has one identity per scope. */
export interface IdentityScope {
  organizationId: string;
  /** The empty string if the identity belongs to no group. */
  groupId: string;
}

/** A browser that was recognised by its secret. */
interface KnownBrowser {
  browserId: string;
  /** The secret of the request that matched. */
  secret: string;
  /** The browser's customer in the requested scope, if there is one. */
  customer: { entityId: string; generation: number } | undefined;
}

/** A browser, and its identity in the requested scope if there is one. */
type BrowserRow = NotNull<EntityRow<CustomerIdentity, 'browser_id' | 'secret_hash' | 'last_seen_day'>> &
  OrNull<EntityRow<CustomerIdentity, 'entity_id' | 'generation'>>;

const DAY_MS = 86_400_000;

/**
 * Finds a browser by any of its identities, and its identity in the requested scope if there is one. `presented` is the
 * identity of the cookies, `scoped` the identity in the scope.
 */
const recogniseStatement = <EntityIds extends string[]>(condition: string) =>
  selectStatement<[organizationId: string, groupId: string, ...EntityIds], BrowserRow>({
    columns: [
      'browser.entity_id AS browser_id',
      'browser.secret_hash',
      'browser.last_seen_day',
      'scoped.entity_id',
      'scoped.generation',
    ],
    from: `customer_identity presented
      JOIN customer_identity browser ON browser.entity_id = presented.browser_id
      LEFT JOIN customer_identity scoped
        ON scoped.browser_id = presented.browser_id AND scoped.organization_id = ? AND scoped.group_id = ?
      WHERE presented.entity_id ${condition}`,
    batch: true,
  });

const RECOGNISE = recogniseStatement<[entityId: string]>('= ?');

/** The same for several identities. The number of placeholders is fixed, so that one prepared statement is enough. */
const RECOGNISE_ANY = recogniseStatement<string[]>(`IN (${Array(MAX_CANDIDATES).fill('?').join(', ')})`);

const NOTE_VISIT = writeStatement<[today: number, browserId: string, secretHash: string]>(
  'UPDATE customer_identity SET last_seen_day = ? WHERE entity_id = ? AND secret_hash = ?',
);

/** The day of a time (milliseconds since 1970), in days since 1970. */
export const dayOf = (timeMs: number): number => Math.floor(timeMs / DAY_MS);

/** Recognises browsers by their identity cookies (protocol §5.3). */
@Injectable()
export class KnownBrowsers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /**
   * Finds the browser to which one of the ids and one of the secrets belong, by one SELECT. Of several such browsers
   * the last one that was created counts. Malformed or mismatched identity cookies lead to no browser. They never cause
   * an error and never lead to another browser's customer (protocol §5.4). The browser is noted as seen today, so that
   * the purge does not delete it as idle.
   */
  async recognise(
    { entityIds, secrets }: CandidateCredentials,
    scope: IdentityScope,
  ): Promise<KnownBrowser | undefined> {
    const rows = await this.rowsOf(entityIds, scope);
    const hashes = secrets.map((secret) => ({ secret, hash: sha256(secret) }));
    const matches = rows.flatMap((row) =>
      hashes.filter(({ hash }) => equalInConstantTime(row.secret_hash, hash)).map(({ secret }) => ({ row, secret })),
    );
    matches.sort((one, other) => compareIds(other.row.browser_id, one.row.browser_id));
    for (const { row, secret } of matches) {
      if (await this.noteVisit(row)) return { browserId: row.browser_id, secret, customer: customerOf(row) };
    }
    return undefined;
  }

  private rowsOf(entityIds: string[], { organizationId, groupId }: IdentityScope): Promise<BrowserRow[]> {
    const [first] = entityIds;
    if (entityIds.length === 1) return this.database.select(RECOGNISE, [organizationId, groupId, first as string]);
    const padding = Array<string>(MAX_CANDIDATES - entityIds.length).fill(first as string);
    return this.database.select(RECOGNISE_ANY, [organizationId, groupId, ...entityIds, ...padding]);
  }

  /**
   * The first call of a day notes the day, so that the browser is not idle. Returns false if the purge has just removed
   * it.
   */
  private async noteVisit({ browser_id, secret_hash, last_seen_day }: BrowserRow): Promise<boolean> {
    const today = dayOf(this.clock.now());
    if (last_seen_day >= today) return true;
    return (await this.database.execute(NOTE_VISIT, [today, browser_id, secret_hash])) > 0;
  }
}

function customerOf({ entity_id: entityId, generation }: BrowserRow): KnownBrowser['customer'] {
  return entityId === null ? undefined : { entityId, generation: generation ?? 0 };
}

/** Browser ids are UUIDv7, so their order as strings is the order of their creation. */
function compareIds(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
