import { Injectable } from '@nestjs/common';
import type { TokenLineage } from '../access-token/token-lineage.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Database } from '../platform/database/database.js';
import { equalInConstantTime, sha256 } from '../platform/secret.js';
import { type CandidateCredentials, MAX_CANDIDATES } from './identity-cookies.js';
import type { IdentityScope } from './identity-scope.js';
import { IdleRule } from './idle-rule.js';
import { credentialHash } from './link-credential.entity.js';
import { lineageOfToken } from './link-lineage.js';
import { RECOGNISE, RECOGNISE_ANY, type RecognisedRow } from './recognise-statements.js';
import { Visits } from './visits.js';

/** A lookup whose browser changes before its visit is noted starts again this often. */
const MAX_ATTEMPTS = 5;

/** The customer that a browser leads to in a scope. */
export interface CustomerOfBrowser {
  entityId: string;
  generation: number;
  /** Whether a browser link leads to the customer, and not the browser's own row. */
  isLinked: boolean;
  /** The lineage of the customer's tokens if the link came from a transfer. */
  lineage?: TokenLineage;
}

/** A browser that was recognised by its secret. */
export interface KnownBrowser {
  browserId: string;
  /** The secret of the request that matched. */
  secret: string;
  /** The browser's customer in the requested scope, if there is one. */
  customer: CustomerOfBrowser | undefined;
  /** The link or own row of the scope if it leads to no customer any more. */
  ended: { linkedId: string | null } | undefined;
}

/** Recognises browsers by their identity cookies (protocol §5.3). */
@Injectable()
export class KnownBrowsers {
  constructor(
    private readonly database: Database,
    private readonly idleRule: IdleRule,
    private readonly visits: Visits,
  ) {}

  /**
   * Finds the browser to which one of the ids and one of the secrets belong, by one SELECT. Of several such browsers
   * the last one that was created counts. Malformed or mismatched identity cookies lead to no browser (malformed ones:
   * `candidatesOf` in identity-cookies.ts). They never cause an error and never lead to another browser's customer
   * (protocol §5.4). The browser is noted as seen today in the scope, so that it is not idle. If the browser or its
   * customer was deleted in the meantime, the method reads again.
   *
   * @throws OAuthError `temporarily_unavailable` if the browser changes all the time
   */
  async recognise(candidates: CandidateCredentials, scope: IdentityScope): Promise<KnownBrowser | undefined> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const [match] = await this.matchesOf(candidates, scope);
      if (!match) return undefined;
      if (await this.visits.note(match.row, scope)) return knownBrowser(match.row, match.secret);
    }
    throw OAuthError.unavailable(new Error('the browser changes all the time'));
  }

  /** Finds all browsers to which one of the ids and one of the secrets belong, the one created last first. */
  async all(candidates: CandidateCredentials, scope: IdentityScope): Promise<KnownBrowser[]> {
    return (await this.matchesOf(candidates, scope)).map(({ row, secret }) => knownBrowser(row, secret));
  }

  private async matchesOf(
    { entityIds, secrets }: CandidateCredentials,
    scope: IdentityScope,
  ): Promise<{ row: RecognisedRow; secret: string }[]> {
    const rows = await this.rowsOf(entityIds, secrets, scope);
    for (const row of rows) if (this.isIdle(row, scope)) row.has_ended = 1;
    const hashes = secrets.map((secret) => ({ secret, hash: sha256(secret) }));
    const matches = rows.flatMap((row) =>
      hashes
        .filter(({ hash }) => equalInConstantTime(row.secret_hash ?? '', hash))
        .map(({ secret }) => ({ row, secret })),
    );
    return matches.sort((one, other) => compareIds(other.row.browser_id, one.row.browser_id));
  }

  /** A row of release 1 has no day of its own, so the day of its browser counts. */
  private isIdle(row: RecognisedRow, { organizationId }: IdentityScope): boolean {
    return row.entity_id !== null && this.idleRule.isIdle(organizationId, row.scope_seen_day ?? row.last_seen_day);
  }

  private rowsOf(ids: string[], secrets: string[], scope: IdentityScope): Promise<RecognisedRow[]> {
    const { organizationId, groupId } = scope;
    const ofScope = [organizationId, groupId, organizationId, groupId] as const;
    const [id, secret] = [ids[0] as string, secrets[0] as string];
    if (ids.length === 1 && secrets.length === 1)
      return this.database.select(RECOGNISE, [...ofScope, credentialHash(id, secret), id]);
    const credentials = ids.flatMap((each) => secrets.map((one) => credentialHash(each, one)));
    const parameters = [...padded(ids, MAX_CANDIDATES), ...padded(credentials, MAX_CANDIDATES ** 2), ...ofScope];
    return this.database.select(RECOGNISE_ANY, parameters);
  }
}

function knownBrowser(row: RecognisedRow, secret: string): KnownBrowser {
  const { browser_id: browserId, entity_id, linked_id, has_ended } = row;
  const isEnded = entity_id !== null && has_ended !== 0;
  return {
    browserId,
    secret,
    customer: isEnded ? undefined : customerOf(row),
    ended: isEnded ? { linkedId: linked_id } : undefined,
  };
}

function customerOf({ entity_id, linked_id, lineage, ...row }: RecognisedRow): CustomerOfBrowser | undefined {
  if (entity_id === null) return undefined;
  const generation = row.generation ?? 0;
  const ofToken = lineageOfToken(lineage, generation);
  return { entityId: entity_id, generation, isLinked: linked_id !== null, ...(ofToken && { lineage: ofToken }) };
}

function padded(values: string[], count: number): string[] {
  return [...values, ...Array<string>(count - values.length).fill(values[0] as string)];
}

/** Browser ids are UUIDv7, so their order as strings is the order of their creation. */
function compareIds(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
