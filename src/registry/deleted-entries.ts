import { Injectable, type Type } from '@nestjs/common';
import { type EntityManager, In, IsNull, LessThan, Not } from 'typeorm';
import { DAY_MS } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn } from '../platform/database/in-transaction.js';
import { selectStatement } from '../platform/database/statement.js';
import { portionsOf } from '../platform/database/value-list.js';
import { ClientApplication } from './client-application.entity.js';
import { Organization } from './organization.entity.js';
import { RegistryRevision } from './registry-revision.entity.js';
import { lockRevision, raiseRevision } from './registry-revision.js';
import { ResourceServer } from './resource-server.entity.js';
import type { RetainedRow } from './row-pages.js';

/** No access token of a deleted client is valid for longer, and most processes have learned of the deletion. */
const RETENTION_MS = DAY_MS;

const LOCK_ORGANIZATION = selectStatement<[id: string, deletedAt: Date], { id: string }>(
  ({ forUpdate }) => `SELECT id FROM organization WHERE id = ? AND deleted_at = ?${forUpdate}`,
);

/** The rows of deleted entries. That of an organization goes when the rest of it is gone. */
@Injectable()
export class DeletedEntries {
  constructor(private readonly database: Database) {}

  /** The clients whose rows may go, after their codes and refresh tokens. */
  clients(now: Date): Promise<ClientApplication[]> {
    return this.find(ClientApplication, now);
  }

  /** @returns the number of rows that each step deleted */
  async *deleteInSteps(clients: ClientApplication[], now: Date): AsyncGenerator<number, void> {
    const servers = await this.find(ResourceServer, now);
    // an entry that was created again with the id of a deleted one stays
    const deletedAt = Not(IsNull());
    for (const rows of portionsOf(clients)) {
      const ids = rows.map(({ clientId }) => clientId);
      yield this.delete(ClientApplication, rows, { clientId: In(ids), deletedAt });
    }
    for (const rows of portionsOf(servers)) {
      const ids = rows.map(({ id }) => id);
      yield this.delete(ResourceServer, rows, { id: In(ids), deletedAt });
    }
  }

  /**
   * Locks the row of a deleted organization in a transaction that erases something of it. A process that was stopped
   * for long could otherwise erase a new organization with the id.
   *
   * @throws Error if the row is gone
   */
  async lockOrganizationIn(manager: EntityManager, id: string, deletedAt: Date): Promise<void> {
    if ((await selectIn(manager, LOCK_ORGANIZATION, [id, deletedAt])).length === 0)
      throw new Error('the erasure has ended in another process');
  }

  /**
   * Each process then reads all entries, because no row says what has changed.
   *
   * @param onDeleted runs before the commit, so that a process that stops then does not forget it
   */
  async deleteOrganization(id: string, deletedAt: Date, onDeleted: () => void): Promise<void> {
    await this.database.transaction(async (manager) => {
      const completeFrom = await raiseRevision(manager);
      await manager.update(RegistryRevision, { id: 1 }, { completeFrom });
      const { affected } = await manager.delete(Organization, { id, deletedAt });
      if (affected === 1) onDeleted();
    });
  }

  private find<Row extends RetainedRow>(entity: Type<Row>, now: Date): Promise<Row[]> {
    const where: object = { deletedAt: LessThan(new Date(now.getTime() - RETENTION_MS)) };
    return this.database.manager.find(entity, { where, withDeleted: true });
  }

  /** A process that has not learned of the deletion yet then reads all entries. */
  private delete<Row extends RetainedRow>(entity: Type<Row>, rows: Row[], where: object): Promise<number> {
    const completeFrom = Math.max(...rows.map(({ revision }) => revision));
    return this.database.transaction(async (manager) => {
      await lockRevision(manager);
      await manager.update(RegistryRevision, { id: 1, completeFrom: LessThan(completeFrom) }, { completeFrom });
      return (await manager.delete(entity, where)).affected ?? 0;
    });
  }
}
