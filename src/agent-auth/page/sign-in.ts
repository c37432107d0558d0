import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Counter } from 'prom-client';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Audit, party } from '../../platform/audit/audit.js';
import { AbandonedTaskError, BoundedQueue, QueueFullError } from '../../platform/bounded-queue.js';
import { disconnectSignal } from '../../platform/http/disconnect-signal.js';
import { MetricsRegistry } from '../../platform/metrics.js';
import { ipOf } from '../../platform/network.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import type { Agent } from '../../registry/agent.entity.js';
import { comparableEmail } from '../../registry/agent-email.js';
import { isPasswordOf, MAX_PARALLEL_HASHES, UNKNOWN_EMAIL_HASH } from '../../registry/agent-password.js';
import { Agents } from '../../registry/agents.js';
import { KnownBrowsers } from '../session/known-browsers.js';
import { SignInFailures } from '../session/sign-in-failures.js';

/** About 2 s of work for one thread, at 20 ms for each hash. */
const MAX_WAITING_CHECKS = 80;

/** What the page shows after a failed sign-in, and what only the log says. */
interface SignInFailure {
  problem: string;
  status: number;
  retryAfter?: number;
  error: string;
  reason: string;
}

export type SignInOutcome = { agent: Agent } | SignInFailure;

/**
 * The passwords are checked in a bounded queue. A hash costs 20 ms of a core and 19 MiB, and any caller can ask for
 * one: without a bound, a flood of sign-ins makes an agent wait for all of them.
 */
@Injectable()
export class SignIn {
  /** @internal */
  readonly queue = new BoundedQueue({ maxRunning: MAX_PARALLEL_HASHES, maxWaiting: MAX_WAITING_CHECKS });
  private readonly outcomes: Counter<'outcome'>;

  constructor(
    private readonly agents: Agents,
    private readonly failures: SignInFailures,
    private readonly browsers: KnownBrowsers,
    private readonly audit: Audit,
    metrics: MetricsRegistry,
  ) {
    const help =
      'Password checks of sign-ins. rejected: the queue was full. abandoned: the client disconnected while it waited.';
    this.outcomes = metrics.counter('cas_password_checks_total', help, 'outcome');
    for (const outcome of ['checked', 'rejected', 'abandoned']) this.outcomes.inc({ outcome }, 0);
    metrics.gauge(
      'cas_password_queue_waiting',
      'Sign-ins that wait for their password check.',
      () => this.queue.waiting,
    );
  }

  /** All failures get the same response, after the same time. @throws OAuthError 503 */
  async attempt(request: Request, typedEmail: string, password: string): Promise<SignInOutcome> {
    // MySQL ignores spaces at the end of an email. Without trim, they would avoid the limit of an account.
    const email = comparableEmail(typedEmail.trim());
    const ip = ipOf(requestContext.required().ip);
    let giveBack: () => Promise<void>;
    try {
      giveBack = await this.failures.count(email, ip, this.browsers.isKnown(request, email));
    } catch (error) {
      if (!(error instanceof OAuthError) || error.status !== 429) throw error;
      this.recordAudit('limited', ip);
      const retryAfter = Number(error.headers['Retry-After']);
      const problem = `Too many attempts. Try again in ${inWords(retryAfter)}.`;
      return { problem, status: 429, retryAfter, error: 'temporarily_unavailable', reason: 'limit: sign_in' };
    }
    const { agent, isRight } = await this.check(request, email, password, giveBack);
    if (!agent || !isRight) {
      this.recordAudit('failed', ip, agent);
      const reason = agent ? 'wrong password' : 'unknown email';
      return { problem: 'The email or the password is wrong.', status: 400, error: 'access_denied', reason };
    }
    this.recordAudit('succeeded', ip, agent);
    await giveBack();
    this.browsers.remember(request, email);
    return { agent };
  }

  /**
   * An attempt that the service could not check is not a failure. An attempt whose client disconnected stays one, and
   * its password is not checked if it still waits. Otherwise a few networks could keep the queue full without reaching
   * a limit.
   */
  private async check(request: Request, email: string, password: string, giveBack: () => Promise<void>) {
    try {
      const agent = await this.agents.byEmail(email);
      const hash = agent?.passwordHash || UNKNOWN_EMAIL_HASH;
      const isRight = await isPasswordOf(hash, password, this.queue, disconnectSignal(request.res as Response));
      this.outcomes.inc({ outcome: 'checked' });
      return { agent, isRight };
    } catch (error) {
      const isAbandoned = error instanceof AbandonedTaskError;
      if (!isAbandoned) await giveBack().catch(() => undefined); // the database may be the cause
      if (!isAbandoned && !(error instanceof QueueFullError)) throw error;
      this.outcomes.inc({ outcome: isAbandoned ? 'abandoned' : 'rejected' });
      throw OAuthError.unavailable(error);
    }
  }

  /** The email itself is never recorded: an unknown email may also belong to a person. */
  private recordAudit(what: 'succeeded' | 'failed' | 'limited', ip: string, agent?: Agent): void {
    const actor = party('agent', agent?.id);
    this.audit.record({
      event: `sign_in.${what}`,
      outcome: what === 'succeeded' ? 'success' : 'failure',
      actor,
      ...(agent && { subject: actor, organizationId: agent.organizationId }),
      details: { ip },
    });
  }
}

function inWords(seconds: number): string {
  if (seconds < 60) return seconds === 1 ? '1 second' : `${seconds} seconds`;
  const minutes = Math.ceil(seconds / 60);
  return minutes === 1 ? '1 minute' : `${minutes} minutes`;
}
