import { Injectable } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { remainingMs, withTimeout } from '../platform/database/database-errors.js';

/** The number of linked ids that the operator sees. A user can sign in on any number of browsers. */
export const MAX_LINKED_IDS = 200;

/** The number of rows of a table of an extension that an export has. */
const MAX_EXPORTED_ROWS = 1_000;

/** The time that a participant has to delete its data in a purge. */
const BACKGROUND_TIMEOUT_MS = 60_000;

/** Stored rows about a customer, by the name of their table. */
export type ExportedRows = Record<string, object[]>;

/** Code, such as a grant, that stores data of customers in its own table. */
export interface CustomerDataParticipant {
  /**
   * Deletes the data of a customer that is erased or purged. An erasure calls it after the customer's sessions are deleted,
   * and again if the erasure is repeated. The participant may have no data of the customer. It has the time of the
   * request, 2.8 s after its first statement. If it fails, the response is 503, and the purge calls it again.
   */
  onErase(entityId: string): Promise<void>;

  /**
   * Returns those of these customers that must be retained although they are idle.
   * `entityIds` has 1 to 500 ids.
   */
  mustRetain(entityIds: string[]): Promise<string[]>;

  /** Returns other ids of a customer, for the operator. */
  linkedIds(entityId: string): Promise<string[]>;

  /**
   * Returns the stored rows about a customer for an export, without secrets and hashes of secrets, at most 1,001 of each
   * table: the export has 1,000 of them, and says that there are more. A participant that stores nothing for an export
   * omits the method.
   */
  exportRows?(entityId: string): Promise<ExportedRows>;
}

/** The extensions that take part in erasing and purging customers. Each adds itself when the application starts. */
@Injectable()
export class CustomerDataParticipants {
  private readonly participants: CustomerDataParticipant[] = [];

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
    return this.collect((participant) => participant.mustRetain(entityIds));
  }

  linkedIds(entityId: string): Promise<string[]> {
    return this.collect((participant) => participant.linkedIds(entityId));
  }

  /** The rows of all extensions. Rows of one table that several participants return follow each other. */
  async exportRows(entityId: string): Promise<{ tables: ExportedRows; truncated: boolean }> {
    const tables = new Map<string, object[]>();
    for (const participant of this.participants)
      for (const [table, rows] of Object.entries((await participant.exportRows?.(entityId)) ?? {}))
        tables.set(table, [...(tables.get(table) ?? []), ...rows]);
    const truncated = [...tables.values()].some(({ length }) => length > MAX_EXPORTED_ROWS);
    const entries = [...tables].map(([table, rows]) => [table, rows.slice(0, MAX_EXPORTED_ROWS)]);
    return { tables: Object.fromEntries(entries), truncated };
  }

  /** Fails if an extension in JavaScript omits the method, so that the purge deletes none of its customers. */
  private async collect(idsOf: (participant: CustomerDataParticipant) => Promise<string[]>): Promise<string[]> {
    const ids: string[] = [];
    for (const participant of this.participants) ids.push(...(await idsOf(participant)));
    return ids;
  }
}
