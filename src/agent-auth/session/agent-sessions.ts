import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Clock } from '../../platform/clock.js';
import { equalInConstantTime, sha256 } from '../../platform/secret.js';
import type { Agent } from '../../registry/agent.entity.js';
import { Agents } from '../../registry/agents.js';
import { PageCookies } from './page-cookies.js';

const NAME = 'agent_session';
/** Seconds: a working day. */
const LIFETIME = 8 * 3600;

/** The session of an agent at the authorization page: a signed cookie that ends with the agent's password. */
@Injectable()
export class AgentSessions {
  constructor(
    private readonly cookies: PageCookies,
    private readonly agents: Agents,
    private readonly clock: Clock,
  ) {}

  begin(request: Request, agent: Agent): void {
    const expires = this.clock.seconds() + LIFETIME;
    this.cookies.write(request, NAME, `${agent.id}.${expires}.${mark(agent)}`, LIFETIME);
  }

  /** Who is signed in; nobody when the session is over, or the agent was removed or has a new password. */
  async agentOf(request: Request): Promise<Agent | undefined> {
    const [id = '', expires = '', shown = ''] = this.cookies.read(request, NAME)?.split('.') ?? [];
    if (!(this.clock.seconds() < Number(expires))) return undefined;
    const agent = await this.agents.byId(id);
    return agent && equalInConstantTime(mark(agent), shown) ? agent : undefined;
  }

  end(request: Request): void {
    this.cookies.remove(request, NAME);
  }
}

/** Changes with the password, and tells nothing of it. */
function mark({ passwordHash }: Agent): string {
  return sha256(passwordHash).slice(0, 16);
}
