import { Injectable } from '@nestjs/common';
import { Column, Entity, type EntityManager, In, Not, PrimaryColumn } from 'typeorm';
import { Audit, party } from '../../audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { type EntityRow, selectStatement } from '../../platform/database/statement.js';
import { portionsOf } from '../../platform/database/value-list.js';
import { Agent } from '../../registry/agent.entity.js';
import { passwordFingerprint } from '../../registry/agent-password.js';
import { ClientApplication } from '../../registry/client-application.entity.js';

/**
 * Ends when the client is deleted, or when the agent moves to another organization or gets a new password, but not with a
 * change of the agent's scopes.
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

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  @Column('varchar', { name: 'password_fingerprint', length: 16 })
  passwordFingerprint!: string;

  @Column('datetime', { name: 'given_at', precision: 3 })
  givenAt!: Date;
}

/** A declared statement, because it has the time limit of a request. */
const FIND_SCOPE = selectStatement<
  [agentId: string, clientId: string, organizationId: string, passwordFingerprint: string],
  EntityRow<Consent, 'scope'>
>({
  columns: ['scope'],
  from: 'consent WHERE agent_id = ? AND client_id = ? AND organization_id = ? AND password_fingerprint = ?',
  batch: true,
});

@Injectable()
export class Consents {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /** @param manager the transaction of the change; another one if omitted */
  endOfAgents(agentIds: string[], manager?: EntityManager): Promise<void> {
    return this.inTransaction(manager, async (each) => {
      for (const id of agentIds) await this.deleteEnded(id, each);
    });
  }

  /** The same for deleted clients, because a new client may get the id of one, and must not inherit its consents. */
  endOfClients(clientIds: string[], manager?: EntityManager): Promise<void> {
    return this.inTransaction(manager, async (each) => {
      for (const some of portionsOf(clientIds)) await each.delete(Consent, { clientId: In(some) });
    });
  }

  async covers(agent: Agent, clientId: string, scope: string): Promise<boolean> {
    const given = await this.given(agent, clientId);
    return scope.split(' ').every((each) => given.includes(each));
  }

  /** Of an earlier consent, only the scopes that the client still has are retained. */
  async remember(agent: Agent, { clientId, scopes }: ClientApplication, more: string): Promise<void> {
    const before = (await this.given(agent, clientId)).filter((each) => scopes.includes(each));
    const scope = [...new Set([...before, ...more.split(' ')])].join(' ');
    const { id: agentId, organizationId } = agent;
    const validity = { organizationId, passwordFingerprint: passwordFingerprint(agent) };
    const consent = { agentId, clientId, scope, ...validity, givenAt: new Date(this.clock.now()) };
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

  /** Deletes consents that have ended. Otherwise a consent would be valid again if the agent moves back. */
  private async deleteEnded(agentId: string, manager: EntityManager): Promise<void> {
    const agent = await manager.findOneBy(Agent, { id: agentId });
    const ended = agent
      ? [
          { agentId, organizationId: Not(agent.organizationId) },
          { agentId, passwordFingerprint: Not(passwordFingerprint(agent)) },
        ]
      : [{ agentId }];
    for (const where of ended) await manager.delete(Consent, where);
  }

  private inTransaction(manager: EntityManager | undefined, work: (manager: EntityManager) => Promise<void>) {
    return manager ? work(manager) : this.database.transaction(work);
  }

  private async given(agent: Agent, clientId: string): Promise<string[]> {
    const { id, organizationId } = agent;
    const fingerprint = passwordFingerprint(agent);
    const [row] = await this.database.select(FIND_SCOPE, [id, clientId, organizationId, fingerprint]);
    return row?.scope.split(' ') ?? [];
  }
}
