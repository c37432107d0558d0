import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Audit } from '../../audit/audit.js';
import { noteRequest } from '../../platform/http/current-request.js';
import { addressOf } from '../../platform/rate-limit/network.js';
import { RateLimits } from '../../platform/rate-limit/rate-limits.js';
import { sha256 } from '../../platform/secret.js';
import type { Agent } from '../../registry/agent.entity.js';
import { isPasswordOf, NOBODYS_HASH } from '../../registry/agent-password.js';
import { Agents } from '../../registry/agents.js';
import { SignInAttempts } from '../session/sign-in-attempts.js';
import { SignedCookies } from '../session/signed-cookies.js';

const DEVICE = 'agent_device';
/** Seconds: a year. */
const DEVICE_LIFETIME = 31_536_000;

export type SignInOutcome = { agent: Agent } | { problem: string; status: number; retryAfter?: number };

/** Whether somebody is the agent they say. */
@Injectable()
export class SignIn {
  constructor(
    private readonly agents: Agents,
    private readonly attempts: SignInAttempts,
    private readonly cookies: SignedCookies,
    private readonly audit: Audit,
    private readonly limits: RateLimits,
  ) {}

  /** Wrong password and unknown email look and take the same. */
  async attempt(request: Request, typedEmail: string, password: string): Promise<SignInOutcome> {
    // MySQL takes no notice of spaces at the end: each would be another account to the limit, and the same to sign in
    const email = typedEmail.trim();
    const device = this.deviceOf(request, email);
    const address = addressOf(request.ip ?? '');
    const wait = this.attempts.begin(email, address, device) || this.takeShared(email, address);
    if (wait > 0) {
      noteRequest({ error: 'temporarily_unavailable', reason: 'limit: sign_in' });
      this.tell('limited', address);
      return { problem: `Too many attempts. Try again in ${inWords(wait)}.`, status: 429, retryAfter: wait };
    }
    const agent = await this.agents.byEmail(email);
    const isRight = await isPasswordOf(agent?.passwordHash ?? NOBODYS_HASH, password);
    if (!agent || !isRight) {
      noteRequest({ error: 'access_denied', reason: agent ? 'wrong password' : 'unknown email' });
      this.tell('failed', address, agent);
      return { problem: 'This email and password do not belong together.', status: 400 };
    }
    this.tell('succeeded', address, agent);
    this.attempts.succeed(email, address, device);
    this.rememberDevice(request, email, device ?? randomUUID());
    return { agent };
  }

  /** Only after the attempts of this process: what they refuse must leave no key behind. */
  private takeShared(email: string, address: string): number {
    return this.limits.takeForAddress('sign_in', address, sha256(email.toLowerCase()));
  }

  /** An unknown email leaves no trace: it may be somebody's. */
  private tell(what: 'succeeded' | 'failed' | 'limited', address: string, agent?: Agent): void {
    const party = { kind: 'agent', id: agent?.id } as const;
    this.audit.record({
      event: `sign_in.${what}`,
      outcome: what === 'succeeded' ? 'success' : 'failure',
      actor: party,
      ...(agent && { subject: party, organizationId: agent.organizationId }),
      details: { address },
    });
  }

  /** The device's id, if this agent has signed in on it before. */
  private deviceOf(request: Request, email: string): string | undefined {
    const [id, ofEmail] = this.cookies.read(request, DEVICE)?.split(' ') ?? [];
    return ofEmail === sha256(email.toLowerCase()) ? id : undefined;
  }

  private rememberDevice(request: Request, email: string, id: string): void {
    this.cookies.write(request, DEVICE, `${id} ${sha256(email.toLowerCase())}`, DEVICE_LIFETIME);
  }
}

function inWords(seconds: number): string {
  if (seconds < 60) return seconds === 1 ? '1 second' : `${seconds} seconds`;
  const minutes = Math.ceil(seconds / 60);
  return minutes === 1 ? '1 minute' : `${minutes} minutes`;
}
