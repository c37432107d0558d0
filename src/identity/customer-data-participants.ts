import { Injectable } from '@nestjs/common';
import { IsISO8601 } from 'class-validator';
import type { EntityManager } from 'typeorm';
import type { RevocableClaims } from '../access-token/token-lineage.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Text } from '../oauth/parameters.js';
import { Database } from '../platform/database/database.js';
import { remainingMs, withTimeout } from '../platform/database/database-errors.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { type ExportedTable, type ExportPage, exportPage, invalidCursor } from './export-page.js';

/** A refresh family that leads to a customer, in responses to the operator. */
export class RefreshFamilyRecord {
  @Text('The id of the refresh family.', EXAMPLE.familyId)
  id!: string;

  @Text('The client that uses the refresh token.', EXAMPLE.clientId)
  client_id!: string;

  @IsISO8601()
  @ApiProperty('When the client used the refresh token last.', EXAMPLE.time)
  last_used_at!: string;

  @IsISO8601()
  @ApiProperty('When the refresh token expires unless it is used.', EXAMPLE.laterTime)
  expires_at!: string;
}

/** The number of linked ids that the operator sees. A user can sign in on any number of browsers. */
export const MAX_LINKED_IDS = 200;

/** The time that a participant has to delete its data in a purge. */
const BACKGROUND_TIMEOUT_MS = 60_000;

/** Code, such as a grant, that stores data of customers in its own table. */
export interface CustomerDataParticipant {
  /**
   * Deletes the data of a customer that is erased or purged. An erasure calls it after the customer's row is erased,
   * and again if the erasure is repeated. The participant may have no data of the customer. It has the time of the
   * request, 2.8 s after its first statement. If it fails, the response is 503, and the purge calls it again.
   */
  onErase(entityId: string): Promise<void>;

  /**
   * Returns those of these customers that must be retained although they are idle, or although their browser is.
   * `entityIds` has 1 to 500 ids.
   */
  mustRetain(entityIds: string[]): Promise<string[]>;

  /** Returns other ids of a customer, for the operator. */
  linkedIds(entityId: string): Promise<string[]>;

  /**
   * Returns the stored rows about a customer for an export, without secrets and hashes of secrets. A participant that
   * stores nothing for an export omits the method. One that can have more than 1,000 rows in a table returns 1,000 at a
   * time, with `next`.
   *
   * @param after `next` of the call before; absent in the first call. It was in a request, so it may be forged
   */
  exportRows?(entityId: string, after?: string): Promise<ExportPage>;
}

/** A device to which a customer was transferred, and that remembers it. */
export interface CustomerDevice {
  kind: 'link' | 'refresh family';
  /** The first token of the chain of transfers; `null` if an agent transferred the customer. */
  root: string | null;
  /** Milliseconds since 1970. */
  addedAt: number;
  /** Increases with the time at which the device was used last. */
  usedAt: number;
  /** The claims with which the device ends. */
  claims: RevocableClaims;
  /** Deletes the device. It is not revoked: its access tokens stay valid until they expire. */
  remove(manager: EntityManager): Promise<void>;
}

/** A folder of the service that stores rows about customers in its own tables. */
export interface CustomerTables {
  /** What an export has of the rows. */
  tables: ExportedTable[];
  /** Deletes the rows of 1 to 500 erased customers, at most 1,000 by one statement. Absent if the rows expire. */
  deleteRows?(entityIds: string[]): Promise<void>;
  /** The rows that `deleteRows` deletes, as the text after `FROM`. The parameter of each is the id of the customer. */
  deletedRows?: string[];
  /** Deletes what identifies a customer, in the transaction of its erasure. */
  forgetIn?(manager: EntityManager, entityId: string): Promise<void>;
  mustRetain?: CustomerDataParticipant['mustRetain'];
  linkedIds?: CustomerDataParticipant['linkedIds'];
  /** Returns the refresh families that lead to a customer, for the operator. */
  refreshFamilies?(entityId: string): Promise<RefreshFamilyRecord[]>;
  /** Reads the live devices of a customer. One that has ended neither counts nor replaces a live one. */
  devices?(manager: EntityManager, entityId: string): Promise<CustomerDevice[]>;
}

type ExportSource = (after?: string) => Promise<ExportPage | undefined>;

/** The participants in erasing and purging customers. Each adds itself when the application starts. */
@Injectable()
export class CustomerDataParticipants {
  /** The service's own tables. @internal */
  readonly own: CustomerTables[] = [];
  private readonly participants: CustomerDataParticipant[] = [];

  constructor(private readonly database: Database) {}

  add(participant: CustomerDataParticipant): void {
    this.participants.push(participant);
  }

  /**
   * Lets each extension delete its data about a customer, even if another extension fails.
   *
   * @throws OAuthError 503 if one has failed or was too slow
   */
  async onErase(entityId: string): Promise<void> {
    const failures: unknown[] = [];
    for (const participant of this.participants) {
      const erasing = Promise.resolve().then(() => participant.onErase(entityId));
      await withTimeout(erasing, Math.max(remainingMs(BACKGROUND_TIMEOUT_MS), 0)).catch((error) =>
        failures.push(error),
      );
    }
    if (failures.length > 0) throw OAuthError.unavailable(failures[0]);
  }

  /** Returns the ids that a participant must retain, in no order. `entityIds` has 1 to 500 ids. */
  mustRetain(entityIds: string[]): Promise<string[]> {
    return this.collect(
      (own) => own.mustRetain?.(entityIds),
      (extension) => extension.mustRetain(entityIds),
    );
  }

  linkedIds(entityId: string): Promise<string[]> {
    return this.collect(
      (own) => own.linkedIds?.(entityId),
      (extension) => extension.linkedIds(entityId),
    );
  }

  /**
   * Returns the stored rows about a customer, or those of the tables and participants that have more. Rows of one table
   * that several participants return follow each other.
   */
  async exportRows(entityId: string, after?: string): Promise<ExportPage> {
    const sources = this.exportSources(entityId);
    const positions = after === undefined ? undefined : parseCursor(after, sources);
    const tables = new Map<string, object[]>();
    const next: Record<string, string> = {};
    for (const [name, rowsAfter] of sources) {
      const position = positions?.get(name);
      if (positions && position === undefined) continue;
      const page = await rowsAfter(position);
      for (const [table, rows] of Object.entries(page?.tables ?? {}))
        tables.set(table, [...(tables.get(table) ?? []), ...rows]);
      if (page?.next !== undefined) next[name] = page.next;
    }
    const hasNext = Object.keys(next).length > 0;
    return { tables: Object.fromEntries(tables), ...(hasNext && { next: JSON.stringify(next) }) };
  }

  /**
   * By their names in a cursor: the service's own tables, then the participants. Those of participants are of their
   * classes, which are the same in another release, whose order differs. A number tells participants of classes with the
   * same name apart.
   */
  private exportSources(entityId: string): Map<string, ExportSource> {
    const sources = new Map<string, ExportSource>();
    for (const table of this.own.flatMap((own) => own.tables))
      sources.set(table.name, (after) => exportPage(this.database, table, entityId, after));
    for (const participant of this.participants) {
      const { name } = participant.constructor;
      const count = [...sources.keys()].filter((other) => other.startsWith(`${name}.`)).length;
      sources.set(`${name}.${count}`, async (after) => participant.exportRows?.(entityId, after));
    }
    return sources;
  }

  /** Fails if an extension in JavaScript omits the method, so that the purge deletes none of its customers. */
  private async collect(
    idsOfOwn: (own: CustomerTables) => Promise<string[]> | undefined,
    idsOf: (extension: CustomerDataParticipant) => Promise<string[]>,
  ): Promise<string[]> {
    const ids: string[] = [];
    for (const own of this.own) ids.push(...((await idsOfOwn(own)) ?? []));
    for (const extension of this.participants) ids.push(...(await idsOf(extension)));
    return ids;
  }
}

/** @throws OAuthError `invalid_request` if the text is no JSON object, or has the position of an unknown source */
function parseCursor(text: string, sources: Map<string, ExportSource>): Map<string, string> {
  try {
    const positions = Object.entries<unknown>(JSON.parse(text));
    const areKnown = positions.every(([name, position]) => sources.has(name) && typeof position === 'string');
    if (areKnown && positions.length > 0) return new Map(positions as [string, string][]);
  } catch {
    // below
  }
  throw invalidCursor();
}
