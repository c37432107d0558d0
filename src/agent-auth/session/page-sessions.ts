import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Audit, party } from '../../platform/audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { randomSecret, sha256 } from '../../platform/secret.js';
import type { Agent } from '../../registry/agent.entity.js';
import { Agents } from '../../registry/agents.js';
import { AgentSessions } from '../../session/agent/agent-sessions.js';
import { PageCookies } from './page-cookies.js';

const COOKIE_NAME = 'agent_session';
/** 8 hours, one working day. */
const LIFETIME_SECONDS = 8 * 3600;

/** The sessions of agents at the authorization page. The cookie has a secret, whose hash is the id (protocol §6.4). */
@Injectable()
export class PageSessions {
  constructor(
    private readonly cookies: PageCookies,
    private readonly sessions: AgentSessions,
    private readonly agents: Agents,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /**
   * Begins a session, and ends the one that the browser had before, with all copies of its cookie.
   *
   * @throws AgentChangedError
   */
  async begin(request: Request, { id: agentId, organizationId, generation }: Agent): Promise<void> {
    const earlier = this.idOf(request);
    if (earlier !== undefined) await this.sessions.endAtPage(earlier);
    const secret = randomSecret('base64url');
    const expiresAt = new Date(this.clock.now() + LIFETIME_SECONDS * 1000);
    const session = { id: sha256(secret), kind: 'page', agentId, organizationId, clientId: '', expiresAt } as const;
    await this.sessions.begin(session, generation);
    this.cookies.write(request, COOKIE_NAME, secret, LIFETIME_SECONDS);
  }

  /** The signed-in agent; `undefined` if the session has ended, or the agent was deleted or has changed. */
  async agentOf(request: Request): Promise<Agent | undefined> {
    const known = await this.knownAgent(request);
    const agent = known && (await this.agents.byId(known.agentId));
    return agent?.generation === known?.generation ? agent : undefined;
  }

  async end(request: Request): Promise<void> {
    const known = await this.knownAgent(request);
    if (known) {
      await this.sessions.endAtPage(this.idOf(request) as string);
      const agent = party('agent', known.agentId);
      this.audit.success('sign_out', agent, agent);
    }
    this.cookies.remove(request, COOKIE_NAME);
  }

  private async knownAgent(request: Request): Promise<{ agentId: string; generation: number } | undefined> {
    const id = this.idOf(request);
    return id === undefined ? undefined : this.sessions.agentAtPage(id);
  }

  private idOf(request: Request): string | undefined {
    const secret = this.cookies.read(request, COOKIE_NAME);
    return secret === undefined ? undefined : sha256(secret);
  }
}
