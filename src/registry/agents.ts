import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import {
  type ColumnOf,
  type EntityRow,
  type SelectStatement,
  selectStatement,
  writeStatement,
} from '../platform/database/statement.js';
import { Agent } from './agent.entity.js';
import { comparableEmail } from './agent-email.js';
import { Registry } from './registry.js';

const COLUMNS = 'id email name password_hash organization_id scopes from_file revision generation version'.split(' ');

type AgentRow = EntityRow<Agent, ColumnOf<Agent>>;

/** Declared statements, because they have the time limit of a request. */
const findBy = (column: 'id' | 'email') =>
  selectStatement<[key: string], AgentRow>({ columns: COLUMNS, from: `agent WHERE ${column} = ?`, batch: true });
const FIND_BY_ID = findBy('id');
const FIND_BY_EMAIL = findBy('email');

const WRITE = writeStatement<[id: string, generation: number]>(
  'UPDATE agent SET version = version + 1 WHERE id = ? AND generation = ?',
);

/**
 * Each use reads the database, so that a new password is valid immediately. An agent of a suspended organization is not
 * found.
 */
@Injectable()
export class Agents {
  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
  ) {}

  byEmail(email: string): Promise<Agent | undefined> {
    return this.find(FIND_BY_EMAIL, comparableEmail(email));
  }

  byId(id: string): Promise<Agent | undefined> {
    return this.find(FIND_BY_ID, id);
  }

  /**
   * Changes the row of an agent in a transaction that begins a session of the agent, so that a change of the agent, which
   * ends its sessions, comes before or after it.
   *
   * @returns false if the agent has changed, or was deleted
   */
  async writeIn(manager: EntityManager, id: string, generation: number): Promise<boolean> {
    return (await writeIn(manager, WRITE, [id, generation])) > 0;
  }

  private async find(statement: SelectStatement<[key: string], AgentRow>, key: string): Promise<Agent | undefined> {
    const [row] = await this.database.select(statement, [key]);
    if (!row || this.registry.isSuspendedOrganization(row.organization_id)) return undefined;
    const { password_hash: passwordHash, organization_id: organizationId, from_file, scopes, ...same } = row;
    return { ...same, passwordHash, organizationId, scopes: JSON.parse(scopes), fromFile: Boolean(from_file) };
  }
}
