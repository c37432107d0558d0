import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import type { EntityRow } from '../../platform/database/entity-row.js';
import { insertIgnoreStatement, selectStatement, writeStatement } from '../../platform/database/statement.js';
import type { Agent } from '../../registry/agent.entity.js';
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
 * Remembers what agents have consented to. A consent belongs to one organization, and ends when the agent moves to another
 * one or gets a new password. Other scopes of the agent do not end it.
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
    this.agents.onChange(async (agentIds) => {
      for (const id of agentIds) await this.deleteEnded(id);
    });
  }

  /** Whether the agent has let the application have every one of these scopes. */
  async covers(agent: Agent, clientId: string, scope: string): Promise<boolean> {
    const given = await this.given(agent, clientId);
    return scope.split(' ').every((each) => given.includes(each));
  }

  /** Adds to what the agent has consented to before, as far as the client is still registered for it. */
  async remember(agent: Agent, { clientId, scopes }: ClientApplication, more: string): Promise<void> {
    const before = (await this.given(agent, clientId)).filter((each) => scopes.includes(each));
    await this.write(agent, clientId, [...new Set([...before, ...more.split(' ')])].join(' '));
  }

  recordAudit(agentId: string, clientId: string, scope: string): void {
    const agent = { kind: 'agent', id: agentId } as const;
    const about = { clientId, details: { scope } };
    this.audit.record({ event: 'consent.given', outcome: 'success', actor: agent, subject: agent, ...about });
  }

  /** Of two that run at once one inserts the row, and the other inserts nothing; both may run again. */
  private async write(agent: Agent, clientId: string, scope: string): Promise<void> {
    const now = new Date(this.clock.now());
    const { id, organizationId } = agent;
    const fingerprint = passwordFingerprint(agent);
    const row: ConsentRow = [scope, organizationId, fingerprint, now, id, clientId];
    if ((await this.database.execute(UPDATE, row)) > 0) return;
    await this.database.execute(INSERT, row);
  }

  /**
   * Deletes what no longer counts, so that it does not count again when the agent moves back. It reads the agent without a
   * lock: the first call is before the commit of the change, which would keep a locking statement waiting.
   */
  private async deleteEnded(agentId: string): Promise<void> {
    const agent = await this.agents.byId(agentId);
    if (!agent) return void (await this.database.executeIdempotent(DELETE_ALL, [agentId]));
    const { organizationId } = agent;
    await this.database.executeIdempotent(DELETE_ENDED, [agentId, organizationId, passwordFingerprint(agent)]);
  }

  private async given(agent: Agent, clientId: string): Promise<string[]> {
    const { id, organizationId } = agent;
    const fingerprint = passwordFingerprint(agent);
    const [row] = await this.database.select(FIND_SCOPE, [id, clientId, organizationId, fingerprint]);
    return row?.scope.split(' ') ?? [];
  }
}
