import { Injectable } from '@nestjs/common';
import type { FindOptionsWhere, ObjectLiteral } from 'typeorm';
import { OrganizationCustomers } from '../../../customer/organization-customers.js';
import { CustomerErasure } from '../../../identity/customer-erasure.js';
import { party } from '../../../platform/audit/audit.js';
import { Database } from '../../../platform/database/database.js';
import { DeletedEntries } from '../../../registry/deleted-entries.js';
import { AGENTS } from '../../../registry/entries/agent.entry.js';
import { CLIENTS } from '../../../registry/entries/client.entry.js';
import type { EntryKind } from '../../../registry/entries/entry-kind.js';
import type { ErasedOrganization } from '../../../registry/organization-rows.js';
import { AgentSessions } from '../../../session/agent/agent-sessions.js';
import { CustomerEvents } from '../../../session/feed/customer-events.js';
import { OneTimeCodes } from '../../../token/stores/one-time-codes.js';
import { RegistryTransactions } from '../registry-transactions.js';

/**
 * The number of customers, or of entries, of one step. Their rows are locked together. With 64, the p99 of other
 * organizations' requests rose by a quarter (docs/performance.md).
 */
const ROWS_PER_STEP_COUNT = 16;

/**
 * Erases what belongs to an organization, in steps. They may stop after any step and be repeated: each finds what is left.
 * Its tokens ended with its suspension, so verifiers get no further entries, except those of its clients.
 */
@Injectable()
export class OrganizationErasure {
  constructor(
    private readonly database: Database,
    private readonly customers: OrganizationCustomers,
    private readonly erasure: CustomerErasure,
    private readonly transactions: RegistryTransactions,
    private readonly deletedEntries: DeletedEntries,
    private readonly agentSessions: AgentSessions,
    private readonly events: CustomerEvents,
    private readonly codes: OneTimeCodes,
  ) {}

  /**
   * The agents come after the customers, so that an email stays taken while there are customers of its agent.
   *
   * @param isLast reads whole tables, even if nothing was left in those with an index on the organization
   * @throws Error if customers cannot be erased; the rest stays then
   */
  async *inSteps(id: string, deletedAt: Date, isLast: boolean): AsyncGenerator<number, void> {
    const organization: ErasedOrganization = {
      id,
      lock: (manager) => this.deletedEntries.lockOrganizationIn(manager, id, deletedAt),
    };
    let erasedCount = 0;
    for (const steps of [
      this.eraseCustomers(organization),
      this.deleteEntries(AGENTS, organization),
      this.deleteEntries(CLIENTS, organization),
    ])
      for await (const count of steps) {
        erasedCount += count;
        yield count;
      }
    if (erasedCount === 0 && !isLast) return;
    yield* this.agentSessions.deleteOfOrganization(organization);
    yield* this.events.deleteOfOrganization(organization);
    yield* this.codes.deleteOfOrganization(organization);
  }

  /** One customer that fails does not stop the others. A step in which all fail does: an extension is out of order. */
  private async *eraseCustomers({ id, lock }: ErasedOrganization): AsyncGenerator<number, void> {
    let failedCount = 0;
    for (let after: string | undefined = ''; after !== undefined; ) {
      const ids: string[] = await this.customers.ids(id, after, ROWS_PER_STEP_COUNT);
      const failed = ids.length === 0 ? 0 : await this.erasure.eraseOfSuspended(ids, lock);
      failedCount += failed;
      if (failed > 0 && failed === ids.length) break;
      yield ids.length - failed;
      after = ids.at(-1);
    }
    if (failedCount > 0) throw new Error(`${failedCount} customers cannot be erased`);
  }

  private async *deleteEntries(kind: EntryKind, { id, lock }: ErasedOrganization): AsyncGenerator<number, void> {
    const ofOrganization: FindOptionsWhere<ObjectLiteral> = { organizationId: id };
    const page = { where: ofOrganization, take: ROWS_PER_STEP_COUNT };
    while (await this.database.manager.existsBy(kind.entity, ofOrganization)) {
      let count = 0;
      await this.transactions.run(
        party('service'),
        async (manager) => {
          await lock(manager);
          const rows = await manager.find(kind.entity, page);
          count = rows.length;
          return rows.map((row) => ({ kind, key: String(row[kind.key.column]), change: 'deleted' as const }));
        },
        { recordsAgentSessions: false },
      );
      yield count;
    }
  }
}
