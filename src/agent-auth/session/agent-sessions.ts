import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Audit, party } from '../../audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { equalInConstantTime } from '../../platform/secret.js';
import type { Agent } from '../../registry/agent.entity.js';
import { passwordFingerprint } from '../../registry/agent-password.js';
import { Agents } from '../../registry/agents.js';
import { Endings } from '../../session/endings.js';
import { TokenValidity } from '../../session/token-validity.js';
import { SignedCookies } from './signed-cookies.js';

const COOKIE_NAME = 'agent_session';
/** 8 hours, one working day. */
const LIFETIME_SECONDS = 8 * 3600;

/** The fields of the cookie, in this order. */
interface Session {
  agentId: string;
  /** Milliseconds since 1970. */
  expires: number;
  fingerprint: string;
  id: string;
  generation: number;
}

/** A signed cookie (protocol §6.4). A sign-out puts it on the denylist, which ends copies of the cookie too. */
@Injectable()
export class AgentSessions {
  constructor(
    private readonly cookies: SignedCookies,
    private readonly agents: Agents,
    private readonly endings: Endings,
    private readonly validity: TokenValidity,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /** Begins a session, and ends the one that the browser had before, with all copies of its cookie. */
  async begin(request: Request, agent: Agent): Promise<void> {
    await this.revoke(this.read(request));
    const expires = this.clock.now() + LIFETIME_SECONDS * 1000;
    const value = [agent.id, expires, passwordFingerprint(agent), randomUUID(), agent.generation].join('.');
    this.cookies.write(request, COOKIE_NAME, value, LIFETIME_SECONDS);
  }

  /** The signed-in agent; `undefined` if the session has ended, or the agent was removed or has a new password. */
  async agentOf(request: Request): Promise<Agent | undefined> {
    const session = this.read(request);
    if (!session || !(this.clock.now() < session.expires)) return undefined;
    const agent = await this.agents.byId(session.agentId);
    if (!agent || !equalInConstantTime(passwordFingerprint(agent), session.fingerprint)) return undefined;
    const { id: jti, agentId: sub, expires, generation: gen } = session;
    const iat = expires / 1000 - LIFETIME_SECONDS;
    const hasEnded = await this.validity.hasEnded({ jti, sub, client_id: '', iat, aud: 'agent-api', gen });
    return hasEnded ? undefined : agent;
  }

  async end(request: Request): Promise<void> {
    const session = this.read(request);
    if (session) {
      await this.revoke(session);
      const agent = party('agent', session.agentId);
      this.audit.success('sign_out', agent, agent);
    }
    this.cookies.remove(request, COOKIE_NAME);
  }

  private async revoke(session: Session | undefined): Promise<void> {
    if (!session || session.expires <= this.clock.now()) return;
    await this.endings.endSignIn(session.id);
  }

  private read(request: Request): Session | undefined {
    const [agentId, expires, fingerprint, id, generation] = this.cookies.read(request, COOKIE_NAME)?.split('.') ?? [];
    if (!agentId || !fingerprint || !id || !generation) return undefined;
    return { agentId, expires: Number(expires), fingerprint, id, generation: Number(generation) };
  }
}
