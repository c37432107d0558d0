import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Denylist } from '../../access-token/denylist.js';
import { Audit } from '../../audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { equalInConstantTime, sha256 } from '../../platform/secret.js';
import type { Agent } from '../../registry/agent.entity.js';
import { Agents } from '../../registry/agents.js';
import { SignedCookies } from './signed-cookies.js';

const NAME = 'agent_session';
/** Seconds: a working day. */
const LIFETIME = 8 * 3600;

/** What the cookie holds, in this order. */
interface Session {
  agentId: string;
  /** Milliseconds since 1970. */
  expires: number;
  /** Of the password it was opened with. */
  mark: string;
  id: string;
  /** The generation of the agent when the session was opened. */
  generation: number;
}

/**
 * The session of an agent at the authorization page: a signed cookie that ends with the agent's password. Signing out
 * puts it on the denylist, so that a copy of the cookie is worth nothing either.
 */
@Injectable()
export class AgentSessions {
  constructor(
    private readonly cookies: SignedCookies,
    private readonly agents: Agents,
    private readonly denylist: Denylist,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /** Begins a session in the place of the one that the browser shows, which ends, for whoever has a copy too. */
  async begin(request: Request, agent: Agent): Promise<void> {
    await this.revoke(this.read(request));
    const expires = this.clock.now() + LIFETIME * 1000;
    this.cookies.write(
      request,
      NAME,
      [agent.id, expires, markOf(agent), randomUUID(), agent.generation ?? 0].join('.'),
      LIFETIME,
    );
  }

  /** Who is signed in; nobody when the session is over, or the agent was removed or has a new password. */
  async agentOf(request: Request): Promise<Agent | undefined> {
    const session = this.read(request);
    if (!session || !(this.clock.now() < session.expires)) return undefined;
    const agent = await this.agents.byId(session.agentId);
    if (!agent || !equalInConstantTime(markOf(agent), session.mark)) return undefined;
    const { id: jti, agentId: sub, expires, generation: gen } = session;
    const iat = expires / 1000 - LIFETIME;
    const isOver = await this.denylist.hasEnded({ jti, sub, client_id: '', iat, aud: 'agent-api', gen });
    return isOver ? undefined : agent;
  }

  async end(request: Request): Promise<void> {
    const session = this.read(request);
    if (session) {
      await this.revoke(session);
      const agent = { kind: 'agent', id: session.agentId } as const;
      this.audit.record({ event: 'sign_out', outcome: 'success', actor: agent, subject: agent });
    }
    this.cookies.remove(request, NAME);
  }

  private async revoke(session: Session | undefined): Promise<void> {
    if (!session || session.expires <= this.clock.now()) return;
    await this.denylist.revokeToken({ jti: session.id, exp: session.expires / 1000 });
  }

  private read(request: Request): Session | undefined {
    const [agentId, expires, mark, id, generation = 0] = this.cookies.read(request, NAME)?.split('.') ?? [];
    if (agentId === undefined || mark === undefined || id === undefined) return undefined;
    return { agentId, expires: Number(expires), mark, id, generation: Number(generation) };
  }
}

/** Changes with the password, and tells nothing of it. */
function markOf({ passwordHash }: Agent): string {
  return sha256(passwordHash).slice(0, 16);
}
