import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { OAuthError } from '../oauth/oauth-error.js';
import { disconnectSignal } from '../platform/http/disconnect-signal.js';
import { ATTEMPTS } from '../platform/rate-limit/limit-rules.js';
import { RateLimits } from '../platform/rate-limit/rate-limits.js';
import { AttemptQueue, type QueuedRequest } from './attempt-queue.js';
import { type Attempt, attemptsOf } from './declared-attempts.js';
import type { GrantResult } from './grant.js';
import type { TokenRequest } from './token-request.js';

/**
 * Limits the requests that a grant refuses (protocol §10.2). A request that runs may still be refused, so it counts
 * until it has finished. Parallel requests beyond the limit wait for it. So they can neither guess more often than the
 * limit allows, nor get 429 although no request was refused.
 */
@Injectable()
export class AttemptLimits {
  private readonly queue = new AttemptQueue();

  constructor(private readonly limits: RateLimits) {}

  /**
   * Runs the work of a grant.
   *
   * @throws OAuthError 429 `temporarily_unavailable` if a limit is reached; 503 `temporarily_unavailable` if the request
   * has waited too long, or too many requests wait; the errors of the work
   */
  async run({ grant, body, http }: TokenRequest, work: () => Promise<GrantResult>): Promise<GrantResult> {
    if (!grant.attempts || !this.limits.limitAttempts) return work();
    const attempts = attemptsOf(grant, body);
    const request = this.queued(attempts);
    await this.queue
      .enter(request, () => disconnectSignal(http.res as Response))
      .catch((error) => Promise.reject(error instanceof OAuthError ? error : OAuthError.unavailable(error)));
    try {
      return await work();
    } catch (error) {
      if (isRefusal(error)) for (const { limit, rule, keys } of attempts) this.limits.add(limit, rule, keys);
      throw error;
    } finally {
      this.queue.leave(request);
    }
  }

  private queued(attempts: Attempt[]): QueuedRequest {
    const keys = attempts.flatMap((attempt) => attempt.keys.map(({ key }) => key));
    return { keys, fullKey: () => this.fullKey(attempts) };
  }

  /**
   * A key whose requests under way could use up its limit; `undefined` if there is none.
   *
   * @throws OAuthError 429 if refused requests alone have used up a limit
   */
  private fullKey(attempts: Attempt[]): string | undefined {
    for (const { limit, rule, keys } of attempts) {
      for (const each of keys) {
        const refused = this.limits.countOf(limit, rule, each);
        const max = each.factor * rule.count;
        if (refused >= max) throw OAuthError.rateLimited(this.limits.reject(ATTEMPTS, rule), ATTEMPTS);
        if (refused + this.queue.running(each.key) >= max) return each.key;
      }
    }
    return undefined;
  }
}

/** Whether the grant has refused the proof. A pending request, a limit and an outage say nothing about the proof. */
function isRefusal(error: unknown): boolean {
  return error instanceof OAuthError && error.status < 500 && error.status !== 429 && !error.isPending;
}
