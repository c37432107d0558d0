import { Injectable, ServiceUnavailableException } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { OAuthError } from '../oauth/oauth-error.js';
import { DeadlineExceededError, remainingMs, withTimeout } from '../platform/database/database-errors.js';
import type { CustomerDataParticipant, ExportedRows } from './customer-data-participant.js';
import { ExtensionHooks } from './extension-hooks.js';

/** The number of rows of a table of an extension that an export has. */
const MAX_EXPORTED_ROWS = 1_000;

/** The time of one call of a participant in a purge. */
const BACKGROUND_TIMEOUT_MS = 60_000;

/**
 * The providers that take part in erasing and purging customers: those of the extension, and the service's own stores.
 */
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
    for (const participant of this.participants)
      await inTime(participant, () => participant.onErase(entityId)).catch((error) => failures.push(error));
    if (failures.length > 0) throw OAuthError.unavailable(failures[0]);
  }

  /**
   * Returns the ids that a participant must retain, in no order. `entityIds` has 1 to 500 ids.
   *
   * @throws Error of a participant, or if one is too slow: the purge would otherwise never end
   */
  async mustRetain(entityIds: string[]): Promise<string[]> {
    const ids: string[] = [];
    for (const participant of this.participants)
      ids.push(...((await inTime(participant, () => participant.mustRetain?.(entityIds))) ?? []));
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

/** @throws ServiceUnavailableException after the time of the request, or in a purge after a minute; the error of the call */
async function inTime<Result>(
  participant: CustomerDataParticipant,
  call: () => Result | Promise<Result>,
): Promise<Result> {
  const called = Promise.resolve().then(call);
  try {
    return await withTimeout(called, remainingMs(BACKGROUND_TIMEOUT_MS));
  } catch (error) {
    if (!(error instanceof DeadlineExceededError)) throw error;
    throw new ServiceUnavailableException(`${participant.constructor.name} did not respond in time`);
  }
}
