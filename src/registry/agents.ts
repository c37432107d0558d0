import { Injectable } from '@nestjs/common';
import type { EntityManager, FindOptionsWhere } from 'typeorm';
import { Database } from '../platform/database/database.js';
import { Agent } from './agent.entity.js';
import { comparableEmail } from './agent-email.js';
import { Registry } from './registry.js';

/**
 * Each use reads the database, so that a new password is valid immediately. An agent of an organization that is
 * suspended or deleted is not found.
 */
@Injectable()
export class Agents {
  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
  ) {}

  byEmail(email: string): Promise<Agent | undefined> {
    return this.find({ email: comparableEmail(email) });
  }

  byId(id: string): Promise<Agent | undefined> {
    return this.find({ id });
  }

  /**
   * Locks the row of an agent, by an UPDATE, in a transaction that begins a session of the agent. So a change of the
   * agent, which ends its sessions, comes before or after it.
   *
   * @returns false if the agent has changed, or was deleted
   */
  async lockIn(manager: EntityManager, id: string, generation: number): Promise<boolean> {
    return (await manager.increment(Agent, { id, generation }, 'version', 1)).affected === 1;
  }

  private async find(key: FindOptionsWhere<Agent>): Promise<Agent | undefined> {
    const agent = await this.database.manager.findOneBy(Agent, key);
    return agent && this.registry.organization(agent.organizationId) ? agent : undefined;
  }
}
