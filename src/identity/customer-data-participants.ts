import { Injectable } from '@nestjs/common';
import { IsISO8601 } from 'class-validator';
import type { EntityManager } from 'typeorm';
import { OAuthError } from '../oauth/oauth-error.js';
import { Text } from '../oauth/parameters.js';
import { remainingMs, withTimeout } from '../platform/database/database-errors.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { type ExportPage, parseCursor } from './export-page.js';

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

/** The time that a participant has to delete its data in a purge. */
const BACKGROUND_TIMEOUT_MS = 60_000;

/**
 * Composes a SELECT of the rows about customers, with the column `entity_id` for the customer.
 *
 * @param list the placeholders of the customers' ids
 */
export type FindOwnRows = (list: string) => string;

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

  /** Returns the refresh families that lead to a customer, for the operator. @internal */
  refreshFamilies?(entityId: string): Promise<RefreshFamilyRecord[]>;

  /** Deletes what identifies a customer, in the transaction of its erasure. @internal */
  forgetIn?(manager: EntityManager, entityId: string): Promise<void>;

  /**
   * Only for the tables of the service: the rows that `onErase` deletes. The purge deletes them if there are too many for
   * a request.
   *
   * @internal
   */
  ownRows?: FindOwnRows[];
}

/** The participants in erasing and purging customers. Each adds itself when the application starts. */
@Injectable()
export class CustomerDataParticipants {
  private readonly participants: CustomerDataParticipant[] = [];

  add(participant: CustomerDataParticipant): void {
    this.participants.push(participant);
  }

  /** The rows about customers in the service's own tables, without those of links. @internal */
  get ownRows(): FindOwnRows[] {
    return this.participants.flatMap(({ ownRows = [] }) => ownRows);
  }

  /** @internal */
  async forgetIn(manager: EntityManager, entityId: string): Promise<void> {
    for (const participant of this.participants) await participant.forgetIn?.(manager, entityId);
  }

  /** Deletes the rows about a customer in the service's own tables, without those of links. @internal */
  async deleteOwnRows(entityId: string): Promise<void> {
    for (const participant of this.participants) if (participant.ownRows) await participant.onErase(entityId);
  }

  /**
   * Lets each extension delete its data of a customer, also if another one fails.
   *
   * @throws OAuthError 503 if one has failed or was too slow
   */
  async onErase(entityId: string): Promise<void> {
    const failures: unknown[] = [];
    for (const participant of this.participants) {
      if (participant.ownRows) continue;
      const erasing = Promise.resolve().then(() => participant.onErase(entityId));
      await withTimeout(erasing, Math.max(remainingMs(BACKGROUND_TIMEOUT_MS), 0)).catch((error) =>
        failures.push(error),
      );
    }
    if (failures.length > 0) throw OAuthError.unavailable(failures[0]);
  }

  /** Returns the ids that a participant must retain, in no order. `entityIds` has 1 to 500 ids. */
  mustRetain(entityIds: string[]): Promise<string[]> {
    return this.collect((participant) => participant.mustRetain(entityIds));
  }

  linkedIds(entityId: string): Promise<string[]> {
    return this.collect((participant) => participant.linkedIds(entityId));
  }

  /**
   * Returns the rows of all participants, or of those that have more. Rows of one table that several participants return
   * follow each other.
   */
  async exportRows(entityId: string, after?: string): Promise<ExportPage> {
    const names = this.names();
    const positions = after === undefined ? undefined : parseCursor<Record<string, string>>(after, names);
    const tables = new Map<string, object[]>();
    const next: Record<string, string> = {};
    for (const [index, participant] of this.participants.entries()) {
      const name = names[index] as string;
      if (positions && typeof positions[name] !== 'string') continue;
      const page = await participant.exportRows?.(entityId, positions?.[name]);
      for (const [table, rows] of Object.entries(page?.tables ?? {}))
        tables.set(table, [...(tables.get(table) ?? []), ...rows]);
      if (page?.next !== undefined) next[name] = page.next;
    }
    const hasNext = Object.keys(next).length > 0;
    return { tables: Object.fromEntries(tables), ...(hasNext && { next: JSON.stringify(next) }) };
  }

  /** @internal */
  refreshFamilies(entityId: string): Promise<RefreshFamilyRecord[]> {
    return this.collect(async (participant) => (await participant.refreshFamilies?.(entityId)) ?? []);
  }

  /**
   * The names of the participants in a cursor. Their classes are the same in another release, whose order differs. A
   * number tells participants of classes with the same name apart.
   */
  private names(): string[] {
    const classes = this.participants.map((participant) => participant.constructor.name);
    return classes.map((name, index) => `${name}.${classes.slice(0, index).filter((other) => other === name).length}`);
  }

  private async collect<Item>(itemsOf: (participant: CustomerDataParticipant) => Promise<Item[]>): Promise<Item[]> {
    const items: Item[] = [];
    for (const participant of this.participants) items.push(...(await itemsOf(participant)));
    return items;
  }
}
