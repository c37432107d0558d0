import { Injectable, type Type } from '@nestjs/common';
import { type EntityManager, type FindOptionsWhere, In, Not, type ObjectLiteral } from 'typeorm';
import { OrganizationCustomers } from '../../../customer/organization-customers.js';
import { CustomerEvent } from '../../../feed/customer-event.entity.js';
import { CustomerErasure } from '../../../identity/customer-erasure.js';
import { party } from '../../../platform/audit/audit.js';
import { Database } from '../../../platform/database/database.js';
import { valueList } from '../../../platform/database/value-list.js';
import { DeletedEntries } from '../../../registry/deleted-entries.js';
import { AGENTS } from '../../../registry/entries/agent.entry.js';
import { CLIENTS } from '../../../registry/entries/client.entry.js';
import type { EntryKind } from '../../../registry/entries/entry-kind.js';
import { pagesOf } from '../../../registry/row-pages.js';
import { AgentSession } from '../../../session/agent/agent-session.entity.js';
import { Session } from '../../../session/session.entity.js';
import { OneTimeCode } from '../../../token/stores/one-time-code.entity.js';
import { RegistryTransactions } from '../registry-transactions.js';

/**
 * The number of customers, or of entries, of one step. Their rows are locked together. With 64, the p99 of other
 * organizations' requests rose by a quarter (docs/performance.md).
 */
const ROWS_PER_STEP = 16;

/** An organization that is being erased. */
interface ErasedOrganization {
  id: string;
  /** Locks its row in the transaction of a step. */
  lock(manager: EntityManager): Promise<void>;
}

interface RowOfOrganization extends ObjectLiteral {
  id: string;
  organizationId: string | null;
}

/**
 * Erases what belongs to an organization, in steps. They may stop after any step and be repeated: each finds what is
 * left. Its tokens ended with its suspension, so verifiers get no further entries, except those of its clients.
 */
@Injectable()
export class OrganizationErasure {
  constructor(
    private readonly database: Database,
    private readonly customers: OrganizationCustomers,
    private readonly erasure: CustomerErasure,
    private readonly transactions: RegistryTransactions,
    private readonly deletedEntries: DeletedEntries,
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
    yield* this.deleteRows(AgentSession, organization);
    // a consumer must learn of erasures
    yield* this.deleteRows(CustomerEvent, organization, { kind: Not('customer.erased') });
    yield* this.deleteRows(OneTimeCode, organization);
  }

  /** One customer that fails does not stop the others. A step in which all fail does: an extension is out of order. */
  private async *eraseCustomers({ id, lock }: ErasedOrganization): AsyncGenerator<number, void> {
    let failedCount = 0;
    for (let after: string | undefined = ''; after !== undefined; ) {
      const ids: string[] = await this.customers.ids(id, after, ROWS_PER_STEP);
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
    const page = { where: ofOrganization, take: ROWS_PER_STEP };
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

  /** Deletes the rows from a table without an index on the organization: reads the table by its primary key. */
  private async *deleteRows<Row extends RowOfOrganization>(
    entity: Type<Row>,
    { id: organizationId, lock }: ErasedOrganization,
    filter: object = {},
  ): AsyncGenerator<number, void> {
    const select = { id: true, organizationId: true };
    for await (const rows of pagesOf(this.database.manager, entity, 'id', filter, { select })) {
      const ids = rows.filter((row) => row.organizationId === organizationId).map(({ id }) => id);
      if (ids.length > 0)
        await this.database.transaction(async (manager) => {
          await lock(manager);
          const values = valueList(ids);
          // proofs without a customer that were made with the agents' sessions
          if ((entity as Type<object>) === AgentSession) await manager.delete(Session, { agentSessionId: In(values) });
          const deleted: object = { id: In(values) };
          await manager.delete(entity, deleted);
        });
      yield ids.length;
    }
  }
}
