import { Injectable } from '@nestjs/common';
import { Column, Entity, type EntityManager, In, PrimaryColumn } from 'typeorm';
import { Audit, party } from '../../audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { portionsOf } from '../../platform/database/value-list.js';
import type { Agent } from '../../registry/agent.entity.js';
import { ClientApplication } from '../../registry/client-application.entity.js';

/**
 * Counts for one generation of the agent: it ends when the agent gets a new password, other scopes or another
 * organization. It also ends when the client is deleted.
 */
@Entity('consent')
export class Consent {
  @PrimaryColumn('varchar', { name: 'agent_id', length: 36 })
  agentId!: string;

  @PrimaryColumn('varchar', { name: 'client_id', length: 128 })
  clientId!: string;

  /** Scopes separated by spaces. */
  @Column('varchar', { length: 1000 })
  scope!: string;

  /** The generation of the agent that gave the consent. */
  @Column('integer')
  generation!: number;

  @Column('datetime', { name: 'given_at', precision: 3 })
  givenAt!: Date;
}

@Injectable()
export class Consents {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /** @param manager the transaction of the change; another one if omitted */
  async endOfAgents(agentIds: string[], manager?: EntityManager): Promise<void> {
    for (const some of portionsOf(agentIds))
      await this.inTransaction(manager, (each) => each.delete(Consent, { agentId: In(some) }));
  }

  /** The same for deleted clients, because a new client may get the id of one, and must not inherit its consents. */
  async endOfClients(clientIds: string[], manager?: EntityManager): Promise<void> {
    for (const some of portionsOf(clientIds))
      await this.inTransaction(manager, (each) => each.delete(Consent, { clientId: In(some) }));
  }

  async covers(agent: Agent, clientId: string, scope: string): Promise<boolean> {
    const given = await this.given(agent, clientId);
    return scope.split(' ').every((each) => given.includes(each));
  }

  /** Of an earlier consent, only the scopes that the client still has are retained. */
  async remember(agent: Agent, { clientId, scopes }: ClientApplication, more: string): Promise<void> {
    const before = (await this.given(agent, clientId)).filter((each) => scopes.includes(each));
    const scope = [...new Set([...before, ...more.split(' ')])].join(' ');
    const { id: agentId, generation } = agent;
    const consent = { agentId, clientId, scope, generation, givenAt: new Date(this.clock.now()) };
    await this.database.transaction(async (manager) => {
      // this process may not have read yet that the client was deleted
      if (await manager.existsBy(ClientApplication, { clientId }))
        await manager.upsert(Consent, consent, ['agentId', 'clientId']);
    });
  }

  recordAudit(agentId: string, clientId: string, scope: string): void {
    const agent = party('agent', agentId);
    this.audit.success('consent.given', agent, agent, { clientId, details: { scope } });
  }

  private inTransaction(manager: EntityManager | undefined, work: (manager: EntityManager) => Promise<unknown>) {
    return manager ? work(manager) : this.database.transaction(work);
  }

  private async given({ id: agentId, generation }: Agent, clientId: string): Promise<string[]> {
    const consent = await this.database.manager.findOneBy(Consent, { agentId, clientId, generation });
    return consent?.scope.split(' ') ?? [];
  }
}
