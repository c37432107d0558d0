import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import { selectStatement } from '../platform/database/statement.js';
import type { Agent } from './agent.entity.js';

/** SQL by which a row of an agent reaches its next generation, so that nothing granted before outlives the change. */
export const NEXT_GENERATION = () => 'COALESCE(generation, 0) + 1';

/** Called with agents whose password, organization or scopes change. */
type ChangeListener = (agentIds: string[], moment: 'before' | 'after') => Promise<void>;

const COLUMNS = [
  'id',
  'email',
  'name',
  'password_hash',
  'organization_id',
  'scopes',
  'owned_by_file',
  'generation',
] as const;

const findBy = (column: 'id' | 'email') =>
  selectStatement<[key: string], EntityRow<Agent, (typeof COLUMNS)[number]>>({
    columns: COLUMNS,
    from: `agent WHERE ${column} = ?`,
    batch: true,
  });

const FIND_BY_ID = findBy('id');
const FIND_BY_EMAIL = findBy('email');

/** The agents of all organizations, read at each use: a password that was changed is changed at once. */
@Injectable()
export class Agents {
  private readonly listeners: ChangeListener[] = [];

  constructor(private readonly database: Database) {}

  /** The agent who signs in with an email, in whatever case. */
  byEmail(email: string): Promise<Agent | undefined> {
    return this.find(FIND_BY_EMAIL, email.toLowerCase());
  }

  byId(id: string): Promise<Agent | undefined> {
    return this.find(FIND_BY_ID, id);
  }

  onChange(listener: ChangeListener): void {
    this.listeners.push(listener);
  }

  /** Calls the listeners. The caller changes agents, and calls it before the change is committed and again after. */
  async changed(agentIds: string[], moment: 'before' | 'after'): Promise<void> {
    for (const listener of this.listeners) await listener(agentIds, moment);
  }

  private async find(statement: typeof FIND_BY_ID, key: string): Promise<Agent | undefined> {
    const [row] = await this.database.select(statement, [key]);
    if (!row) return undefined;
    const { id, email, name, scopes } = row;
    return {
      id,
      email,
      name,
      passwordHash: row.password_hash,
      organizationId: row.organization_id,
      scopes: JSON.parse(scopes),
      ownedByFile: Boolean(row.owned_by_file),
      generation: row.generation ?? 0,
    };
  }
}
