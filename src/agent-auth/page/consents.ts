import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';

/** Remembers what agents have consented to. */
@Injectable()
export class Consents {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /** Whether the agent has let the application have every one of these scopes. */
  async covers(agentId: string, clientId: string, scope: string): Promise<boolean> {
    const given = await this.given(agentId, clientId);
    return scope.split(' ').every((each) => given.includes(each));
  }

  /** Adds to what the agent has consented to before, as far as the client is still registered for it. */
  async give(agentId: string, { clientId, scopes }: ClientApplication, more: string): Promise<void> {
    const before = (await this.given(agentId, clientId)).filter((each) => scopes.includes(each));
    const scope = [...new Set([...before, ...more.split(' ')])].join(' ');
    await this.write(agentId, clientId, scope);
    const agent = { kind: 'agent', id: agentId } as const;
    const about = { clientId, details: { scope: more } };
    this.audit.record({ event: 'consent.given', outcome: 'success', actor: agent, subject: agent, ...about });
  }

  private async write(agentId: string, clientId: string, scope: string): Promise<void> {
    const now = new Date(this.clock.now());
    const update = 'UPDATE consent SET scope = ?, given_at = ? WHERE agent_id = ? AND client_id = ?';
    if ((await this.database.change(update, [scope, now, agentId, clientId])) > 0) return;
    const insert = `INSERT ${this.database.ignore} INTO consent (agent_id, client_id, scope, given_at) VALUES (?, ?, ?, ?)`;
    await this.database.change(insert, [agentId, clientId, scope, now]);
  }

  private async given(agentId: string, clientId: string): Promise<string[]> {
    const sql = 'SELECT scope FROM consent WHERE agent_id = ? AND client_id = ?';
    const [row] = await this.database.select<{ scope: string }>(sql, [agentId, clientId]);
    return row?.scope.split(' ') ?? [];
  }
}
