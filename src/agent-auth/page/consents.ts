import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit } from '../../audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import type { EntityRow } from '../../platform/database/entity-row.js';
import { writeIn } from '../../platform/database/in-transaction.js';
import {
  bindWrite,
  insertIgnoreStatement,
  selectStatement,
  writeStatement,
} from '../../platform/database/statement.js';
import { Agent } from '../../registry/agent.entity.js';
import { passwordFingerprint } from '../../registry/agent-password.js';
import { Agents } from '../../registry/agents.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import { Consent } from './consent.entity.js';

const FIND_SCOPE = selectStatement<
  [agentId: string, clientId: string, organizationId: string, passwordFingerprint: string],
  EntityRow<Consent, 'scope'>
>({
  columns: ['scope'],
  from: 'consent WHERE agent_id = ? AND client_id = ? AND organization_id = ? AND password_fingerprint = ?',
  batch: true,
});

const INSERT = insertIgnoreStatement({
  into: Consent,
  columns: ['scope', 'organization_id', 'password_fingerprint', 'given_at', 'agent_id', 'client_id'],
});

type ConsentRow = [
  scope: string,
  organizationId: string,
  passwordFingerprint: string,
  now: Date,
  agentId: string,
  clientId: string,
];

const UPDATE =
  writeStatement<ConsentRow>(`UPDATE consent SET scope = ?, organization_id = ?, password_fingerprint = ?, given_at = ?
  WHERE agent_id = ? AND client_id = ?`);

const DELETE_ALL = writeStatement<[agentId: string]>('DELETE FROM consent WHERE agent_id = ?');

const DELETE_ENDED = writeStatement<[agentId: string, organizationId: string, passwordFingerprint: string]>(
  'DELETE FROM consent WHERE agent_id = ? AND (organization_id <> ? OR password_fingerprint <> ?)',
);

/**
 * Stores the consents of agents. A consent belongs to one organization. It ends when the agent moves to another
 * organization or gets a new password. A change of the agent's scopes does not end it.
 */
@Injectable()
export class Consents implements OnModuleInit {
  constructor(
    private readonly database: Database,
    private readonly agents: Agents,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  onModuleInit(): void {
    this.agents.onRevocation(async (agentIds, _moment, manager) => {
      for (const id of agentIds) await this.deleteEnded(id, manager);
    });
  }

  /** Whether the agent has consented to every one of these scopes. */
  async covers(agent: Agent, clientId: string, scope: string): Promise<boolean> {
    const given = await this.given(agent, clientId);
    return scope.split(' ').every((each) => given.includes(each));
  }

  /** Adds scopes to an earlier consent, of which only the scopes that the client still has are retained. */
  async remember(agent: Agent, { clientId, scopes }: ClientApplication, more: string): Promise<void> {
    const before = (await this.given(agent, clientId)).filter((each) => scopes.includes(each));
    await this.write(agent, clientId, [...new Set([...before, ...more.split(' ')])].join(' '));
  }

  recordAudit(agentId: string, clientId: string, scope: string): void {
    const agent = { kind: 'agent', id: agentId } as const;
    const about = { clientId, details: { scope } };
    this.audit.record({ event: 'consent.given', outcome: 'success', actor: agent, subject: agent, ...about });
  }

  /** If two requests insert the row at the same time, one of them inserts it and the other changes nothing. */
  private async write(agent: Agent, clientId: string, scope: string): Promise<void> {
    const now = new Date(this.clock.now());
    const { id, organizationId } = agent;
    const fingerprint = passwordFingerprint(agent);
    const row: ConsentRow = [scope, organizationId, fingerprint, now, id, clientId];
    if ((await this.database.execute(UPDATE, row)) > 0) return;
    await this.database.execute(INSERT, row);
  }

  /**
   * Deletes consents that have ended. Otherwise a consent would be valid again if the agent moves back.
   *
   * @param manager of the transaction that changes the agent
   */
  private async deleteEnded(agentId: string, manager?: EntityManager): Promise<void> {
    const agent = manager ? await manager.findOneBy(Agent, { id: agentId }) : await this.agents.byId(agentId);
    const ended = agent
      ? bindWrite(DELETE_ENDED, [agentId, agent.organizationId, passwordFingerprint(agent)])
      : bindWrite(DELETE_ALL, [agentId]);
    if (manager) await writeIn(manager, ended.statement, ended.parameters);
    else await this.database.executeIdempotent(ended.statement, ended.parameters);
  }

  private async given(agent: Agent, clientId: string): Promise<string[]> {
    const { id, organizationId } = agent;
    const fingerprint = passwordFingerprint(agent);
    const [row] = await this.database.select(FIND_SCOPE, [id, clientId, organizationId, fingerprint]);
    return row?.scope.split(' ') ?? [];
  }
}
