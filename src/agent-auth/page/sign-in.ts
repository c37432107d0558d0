import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Audit } from '../../audit/audit.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { AbandonedTaskError } from '../../platform/bounded-queue.js';
import { addressOf } from '../../platform/rate-limit/network.js';
import { RateLimits } from '../../platform/rate-limit/rate-limits.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { sha256 } from '../../platform/secret.js';
import type { Agent } from '../../registry/agent.entity.js';
import { NOBODYS_HASH } from '../../registry/agent-password.js';
import { Agents } from '../../registry/agents.js';
import { PasswordChecks } from '../session/password-checks.js';
import { type SignInAttempt, SignInAttempts } from '../session/sign-in-attempts.js';
import { SignedCookies } from '../session/signed-cookies.js';

const DEVICE = 'agent_device';
/** A year. */
const DEVICE_LIFETIME_SECONDS = 31_536_000;

export type SignInOutcome = { agent: Agent } | { problem: string; status: number; retryAfter?: number };

/** Signs agents in with their email and password. */
@Injectable()
export class SignIn {
  constructor(
    private readonly agents: Agents,
    private readonly attempts: SignInAttempts,
    private readonly passwordChecks: PasswordChecks,
    private readonly cookies: SignedCookies,
    private readonly audit: Audit,
    private readonly limits: RateLimits,
  ) {}

  /**
   * Checks an email and a password. A wrong password and an unknown email get the same response, after the same time.
   *
   * @throws OAuthError `temporarily_unavailable`, 503, if too many passwords wait to be checked
   */
  async attempt(request: Request, typedEmail: string, password: string): Promise<SignInOutcome> {
    // MySQL ignores spaces at the end of an email: each spelling would be an account of its own to the limit
    const email = typedEmail.trim();
    const device = this.deviceOf(request, email);
    const address = addressOf(requestContext.required().ip);
    const attempt = this.attempts.begin(email, address, device);
    const wait = attempt.waitSeconds || this.takeShared(email, address);
    if (wait > 0) {
      requestContext.set({ error: 'temporarily_unavailable', reason: 'limit: sign_in' });
      this.recordAudit('limited', address);
      return { problem: `Too many attempts. Try again in ${inWords(wait)}.`, status: 429, retryAfter: wait };
    }
    const { agent, isRight } = await this.check(request, email, password, attempt);
    if (!agent || !isRight) {
      requestContext.set({ error: 'access_denied', reason: agent ? 'wrong password' : 'unknown email' });
      this.recordAudit('failed', address, agent);
      return { problem: 'This email and password do not belong together.', status: 400 };
    }
    this.recordAudit('succeeded', address, agent);
    this.attempts.succeed(attempt);
    this.rememberDevice(request, email, device ?? randomUUID());
    return { agent };
  }

  /**
   * An attempt that the service could not check is not a failure: the queue was full, or the database unreachable. An attempt
   * whose client disconnected stays a failure. Otherwise a few networks could keep the queue full without reaching a limit.
   */
  private async check(request: Request, email: string, password: string, attempt: SignInAttempt) {
    try {
      const agent = await this.agents.byEmail(email);
      const hash = agent?.passwordHash ?? NOBODYS_HASH;
      return { agent, isRight: await this.passwordChecks.isPasswordOf(hash, password, request) };
    } catch (error) {
      if (error instanceof AbandonedTaskError) throw OAuthError.unavailable(error);
      this.attempts.withdraw(attempt);
      throw error;
    }
  }

  /** Asked after the attempts of this process: an attempt that they refuse must not create a key. */
  private takeShared(email: string, address: string): number {
    return this.limits.takeForAddress('sign_in', address, sha256(email.toLowerCase()));
  }

  /** The email itself is never recorded: an unknown one may be a person's too. */
  private recordAudit(what: 'succeeded' | 'failed' | 'limited', address: string, agent?: Agent): void {
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
    this.cookies.write(request, DEVICE, `${id} ${sha256(email.toLowerCase())}`, DEVICE_LIFETIME_SECONDS);
  }
}

function inWords(seconds: number): string {
  if (seconds < 60) return seconds === 1 ? '1 second' : `${seconds} seconds`;
  const minutes = Math.ceil(seconds / 60);
  return minutes === 1 ? '1 minute' : `${minutes} minutes`;
}
