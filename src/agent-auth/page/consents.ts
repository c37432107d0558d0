import { Injectable } from '@nestjs/common';
import { type EntityManager, In } from 'typeorm';
import { Audit, party } from '../../platform/audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { portionsOf } from '../../platform/database/value-list.js';
import type { Agent } from '../../registry/agent.entity.js';
import { Agents } from '../../registry/agents.js';
import { ClientApplication } from '../../registry/client-application.entity.js';
import { Consent } from './consent.entity.js';

@Injectable()
export class Consents {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly audit: Audit,
    private readonly agents: Agents,
  ) {}

  /**
   * Ends the consents of agents, or to deleted clients: a new client may get the id of one, and must not inherit them.
   *
   * @param manager the transaction of the change; another one if omitted
   */
  async end(of: 'agentId' | 'clientId', ids: string[], manager?: EntityManager): Promise<void> {
    if (ids.length === 0) return;
    const end = async (transaction: EntityManager) => {
      for (const portion of portionsOf(ids)) await transaction.delete(Consent, { [of]: In(portion) });
    };
    await (manager ? end(manager) : this.database.transaction(end));
  }

  async covers(agent: Agent, clientId: string, scope: string): Promise<boolean> {
    const scopes = await scopesOf(this.database.manager, agent, clientId);
    return scope.split(' ').every((each) => scopes.includes(each));
  }

  /** Of an earlier consent, only the scopes that the client still has are retained. */
  async remember(agent: Agent, { clientId, scopes }: ClientApplication, newScope: string): Promise<void> {
    const { id: agentId, generation } = agent;
    await this.database.transaction(async (manager) => {
      // a parallel consent comes before or after this one
      if (!(await this.agents.lockIn(manager, agentId, generation))) return;
      // this process may not have read yet that the client was deleted
      if (!(await manager.existsBy(ClientApplication, { clientId }))) return;
      const earlier = (await scopesOf(manager, agent, clientId)).filter((each) => scopes.includes(each));
      const scope = [...new Set([...earlier, ...newScope.split(' ')])].join(' ');
      const consent = { agentId, clientId, scope, generation, givenAt: new Date(this.clock.now()) };
      await manager.upsert(Consent, consent, ['agentId', 'clientId']);
    });
  }

  recordAudit(agentId: string, clientId: string, scope: string): void {
    const agent = party('agent', agentId);
    this.audit.success('consent.given', agent, agent, { clientId, details: { scope } });
  }
}

async function scopesOf(manager: EntityManager, { id: agentId, generation }: Agent, clientId: string) {
  const consent = await manager.findOneBy(Consent, { agentId, clientId, generation });
  return consent?.scope.split(' ') ?? [];
}
