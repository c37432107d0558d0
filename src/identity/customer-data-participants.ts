import { Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { OAuthError } from '../oauth/oauth-error.js';
import { remainingMs, withTimeout } from '../platform/database/database-errors.js';
import type { CustomerDataParticipant, ExportedRows } from './customer-data-participant.js';
import { ExtensionHooks } from './extension-hooks.js';

/** The number of rows of a table of an extension that an export has. */
const MAX_EXPORTED_ROWS = 1_000;

/** The time that a participant has to delete its data in a purge. */
const BACKGROUND_TIMEOUT_MS = 60_000;

/** The providers that take part in erasing and purging customers: those of the extension, and the service's own stores. */
@Injectable()
export class CustomerDataParticipants {
  constructor(
    private readonly hooks: ExtensionHooks,
    private readonly modules: ModuleRef,
  ) {}

  private get participants(): CustomerDataParticipant[] {
    return this.hooks.participants.map((participant) => this.modules.get(participant, { strict: false }));
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
      await withTimeout(erasing, remainingMs(BACKGROUND_TIMEOUT_MS)).catch((error) => failures.push(error));
    }
    if (failures.length > 0) throw OAuthError.unavailable(failures[0]);
  }

  /** Returns the ids that a participant must retain, in no order. `entityIds` has 1 to 500 ids. */
  async mustRetain(entityIds: string[]): Promise<string[]> {
    const ids: string[] = [];
    for (const participant of this.participants) ids.push(...((await participant.mustRetain?.(entityIds)) ?? []));
    return ids;
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
}
