import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import type { Agent } from './agent.entity.js';

/** SQL by which a row of an agent reaches its next generation, so that nothing granted before outlives the change. */
export const NEXT_GENERATION = () => 'COALESCE(generation, 0) + 1';

/** Called with agents whose password, organization or scopes change. */
type ChangeListener = (agentIds: string[], moment: 'before' | 'after') => Promise<void>;

interface AgentRow {
  id: string;
  email: string;
  name: string;
  password_hash: string;
  organization_id: string;
  scopes: string;
  owned_by_file: number | boolean;
  generation: number | null;
}

const SELECT =
  'SELECT id, email, name, password_hash, organization_id, scopes, owned_by_file, generation FROM agent WHERE';

/** The agents of all organizations, read at each use: a password that was changed is changed at once. */
@Injectable()
export class Agents {
  private readonly listeners: ChangeListener[] = [];

  constructor(private readonly database: Database) {}

  /** The agent who signs in with an email, in whatever case. */
  byEmail(email: string): Promise<Agent | undefined> {
    return this.find(`${SELECT} email = ?`, email.toLowerCase());
  }

  byId(id: string): Promise<Agent | undefined> {
    return this.find(`${SELECT} id = ?`, id);
  }

  onChange(listener: ChangeListener): void {
    this.listeners.push(listener);
  }

  /** Calls the listeners. The caller changes agents, and calls it before the change is committed and again after. */
  async changed(agentIds: string[], moment: 'before' | 'after'): Promise<void> {
    for (const listener of this.listeners) await listener(agentIds, moment);
  }

  private async find(sql: string, key: string): Promise<Agent | undefined> {
    const [row] = await this.database.select<AgentRow>(sql, [key]);
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
