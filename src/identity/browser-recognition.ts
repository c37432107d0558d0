import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import type { TokenLineage } from '../access-token/token-lineage.js';
import { Database } from '../platform/database/database.js';
import { type EntityRow, type OrNull, selectStatement } from '../platform/database/statement.js';
import { equalInConstantTime, sha256 } from '../platform/secret.js';
import type { BrowserLink, KnownBrowser } from './browser-link.entity.js';
import type { IdentityScope } from './customer.js';
import { CANDIDATE_LIST, type CandidateCredentials, padded, partsOf } from './identity-cookies.js';
import { LinkLifetime } from './link-lifetime.js';
import { claimsOfLink, HAS_ENDED_FLAG, type LinkLineage } from './links.js';

/** A browser, and its link in the requested scope, if there is one. */
type RecognizedRow = EntityRow<KnownBrowser, 'browser_id' | 'secret_hash'> &
  OrNull<EntityRow<BrowserLink, 'entity_id' | 'origin' | 'seen_day'>> &
  EntityRow<BrowserLink, 'signed_in_until' | 'lineage'> & {
    customer_generation: number | null;
    generation_of_link: number | null;
    has_ended: number;
    /** A customer of the browser whose id the request has; `null` if the browser has none of the ids. */
    presented_id: string | null;
  };

const COLUMNS = [
  'browser.browser_id',
  'browser.secret_hash',
  'link.entity_id',
  'link.origin',
  'link.seen_day',
  'link.signed_in_until',
  'link.lineage',
  'link.generation AS generation_of_link',
  'customer.generation AS customer_generation',
  HAS_ENDED_FLAG,
];

const LINK_OF_SCOPE = `LEFT JOIN browser_customer link
    ON link.browser_id = browser.browser_id AND link.organization_id = ? AND link.group_id = ?
  LEFT JOIN customer ON customer.entity_id = link.entity_id`;

/**
 * Reads by keys only: the browser, its link in the scope, the customer, and whether the id of the cookie is of this
 * browser. It has joins, because MariaDB plans a subquery at each execution
 * (docs/decisions/0035-customers-browsers-links.md).
 */
const RECOGNIZE = selectStatement<
  [organizationId: string, groupId: string, entityId: string, browserId: string],
  RecognizedRow
>({
  columns: [...COLUMNS, 'presented.entity_id AS presented_id'],
  from: `browser ${LINK_OF_SCOPE}
    LEFT JOIN browser_customer presented ON presented.browser_id = browser.browser_id AND presented.entity_id = ?
    WHERE browser.browser_id = ?`,
  batch: true,
});

/** The same for several ids and secrets. */
const RECOGNIZE_ANY = selectStatement<string[], RecognizedRow>(
  `SELECT ${COLUMNS.join(', ')}, (SELECT MIN(presented.entity_id) FROM browser_customer presented
      WHERE presented.browser_id = browser.browser_id AND presented.entity_id IN (${CANDIDATE_LIST})) AS presented_id
    FROM browser ${LINK_OF_SCOPE} WHERE browser.browser_id IN (${CANDIDATE_LIST})`,
);

/** The customer that a browser leads to in a scope. */
export interface LinkedCustomer {
  entityId: string;
  generation: number;
  origin: BrowserLink['origin'];
  seenDay: number;
  /** The lineage of the customer's tokens if the link came from a transfer. */
  lineage?: TokenLineage;
}

/** A browser that was recognized by its secret. */
export interface RecognizedBrowser {
  browserId: string;
  secretHash: string;
  /** The value of the cookie with the browser's id and secret. */
  cookie: string;
  /** The customer that the browser leads to in the requested scope. */
  customer: LinkedCustomer | undefined;
  /** The customer of the scope's link if the link has ended. */
  endedId?: string;
}

/** Recognizes browsers by their identity cookies (protocol §5.3). */
@Injectable()
export class BrowserRecognition {
  constructor(
    private readonly database: Database,
    private readonly denylist: Denylist,
    private readonly lifetime: LinkLifetime,
  ) {}

  /**
   * Finds the browser to which one of the ids and one of the secrets belong: the newest one if there are several.
   * Malformed or mismatched identity cookies belong to no browser. They never cause an error and never lead to another
   * browser's customer (protocol §5.4).
   */
  async find(
    candidates: CandidateCredentials | undefined,
    scope: IdentityScope,
  ): Promise<RecognizedBrowser | undefined> {
    return (await this.all(candidates, scope))[0];
  }

  /** Finds all browsers to which one of the ids and one of the secrets belong, the one created last first. */
  async all(candidates: CandidateCredentials | undefined, scope: IdentityScope): Promise<RecognizedBrowser[]> {
    if (!candidates) return [];
    const rows = await this.rowsOf(candidates, scope);
    const browsers: RecognizedBrowser[] = [];
    for (const row of rows) {
      const cookie = row.presented_id === null ? undefined : matchingCookie(row, candidates);
      if (cookie !== undefined) browsers.push(await this.recognized(row, cookie, scope));
    }
    return browsers.sort((one, other) => (one.browserId < other.browserId ? 1 : -1));
  }

  private rowsOf({ entityIds, secrets }: CandidateCredentials, scope: IdentityScope): Promise<RecognizedRow[]> {
    const { organizationId, groupId } = scope;
    const browserIds = secrets.map((secret) => partsOf(secret).browserId);
    const [entityId, browserId] = [entityIds[0] as string, browserIds[0] as string];
    if (entityIds.length === 1 && browserIds.length === 1)
      return this.database.select(RECOGNIZE, [organizationId, groupId, entityId, browserId]);
    const parameters = [...padded(entityIds), organizationId, groupId, ...padded(browserIds)];
    return this.database.select(RECOGNIZE_ANY, parameters);
  }

  private async recognized(row: RecognizedRow, cookie: string, scope: IdentityScope): Promise<RecognizedBrowser> {
    const { browser_id: browserId, secret_hash: secretHash } = row;
    const browser = { browserId, secretHash, cookie };
    if (row.entity_id === null) return { ...browser, customer: undefined };
    if (await this.hasEnded(row, scope)) return { ...browser, customer: undefined, endedId: row.entity_id };
    const { entity_id: entityId, lineage, ...link } = row;
    const generation = row.customer_generation as number;
    const customer: LinkedCustomer = {
      ...{ entityId, generation, origin: link.origin as LinkedCustomer['origin'], seenDay: link.seen_day as number },
      ...(lineage !== null && {
        lineage: { ...(JSON.parse(lineage) as LinkLineage), gen: row.generation_of_link as number },
      }),
    };
    return { ...browser, customer };
  }

  /** Only a link from a transfer costs a second SELECT. */
  private async hasEnded(row: RecognizedRow, { organizationId }: IdentityScope): Promise<boolean> {
    const { entity_id, generation_of_link, seen_day, signed_in_until, lineage } = row;
    if (row.has_ended !== 0 || this.lifetime.hasPassed(organizationId, seen_day as number, signed_in_until))
      return true;
    if (lineage === null) return false; // it came by no transfer
    const claims = claimsOfLink({ entityId: entity_id as string, generation: generation_of_link as number, lineage });
    return claims !== undefined && this.denylist.hasEnded(claims);
  }
}

/** The first of the cookies that has the browser's secret. */
export function matchingCookie(
  row: Pick<RecognizedRow, 'browser_id' | 'secret_hash'>,
  { secrets }: CandidateCredentials,
): string | undefined {
  return secrets.find((cookie) => {
    const { browserId, secret } = partsOf(cookie);
    return browserId === row.browser_id && equalInConstantTime(row.secret_hash, sha256(secret));
  });
}
