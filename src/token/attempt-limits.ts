import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { OAuthError } from '../oauth/oauth-error.js';
import { errorOf } from '../oauth/thrown-error.js';
import { parseLimit, type RateLimitRule } from '../platform/configuration/rate-limit-rule.js';
import { disconnectSignal } from '../platform/http/disconnect-signal.js';
import { keysOfIp, type LimitKey } from '../platform/network.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { sha256 } from '../platform/secret.js';
import { withoutTrailingSpaces } from '../platform/text-forms.js';
import { declaredProperties } from '../platform/validation.js';
import { ATTEMPTS, RateLimits } from '../rate-limit/rate-limits.js';
import { AttemptQueue, type QueuedRequest } from './attempt-queue.js';
import type { DeclaredAttemptLimit, GrantBody, GrantMetadata, GrantResult } from './grant.js';

interface AttemptedRequest {
  grant: GrantMetadata;
  parameters: GrantBody;
  http: Request;
}

/**
 * Limits the requests that a grant refuses (protocol §10.2). A request that runs may still be refused, so it counts
 * until it has finished. Parallel requests beyond the limit wait for it. So they can neither guess more often than the
 * limit allows, nor get 429 although no request was refused.
 */
@Injectable()
export class AttemptLimits {
  private readonly queue = new AttemptQueue();

  constructor(private readonly limits: RateLimits) {}

  /** @throws OAuthError 429 if a limit is reached; 503 if too many requests wait, or this one too long; of `work` */
  async run({ grant, parameters, http }: AttemptedRequest, work: () => Promise<GrantResult>): Promise<GrantResult> {
    if (!this.limits.limitAttempts) return work();
    const attempts = attemptsOf(grant, parameters);
    const keys = attempts.flatMap((attempt) => attempt.keys.map(({ key }) => key));
    const request: QueuedRequest = { keys, fullKey: () => this.fullKey(attempts) };
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

  /** A key whose requests under way could use up its limit. @throws OAuthError 429 if refused requests alone have */
  private fullKey(attempts: Attempt[]): string | undefined {
    for (const { limit, rule, keys } of attempts) {
      for (const each of keys) {
        const refused = this.limits.requestsOf(limit, rule, each);
        const max = each.factor * rule.count;
        if (refused >= max) throw this.limits.rejected(ATTEMPTS, rule);
        if (refused + this.queue.running(each.key) >= max) return each.key;
      }
    }
    return undefined;
  }
}

/** Whether the grant has refused the proof. A pending request, a limit and an outage say nothing about the proof. */
function isRefusal(error: unknown): boolean {
  const { status, isPending } = errorOf(error);
  return status < 500 && status !== 429 && !isPending;
}

interface Attempt {
  /** The name of the limit's counts. */
  limit: string;
  rule: RateLimitRule;
  keys: LimitKey[];
}

/** @throws Error if the limits of refused requests of a grant are not usable */
export function assertAttemptsUsable(grant: GrantMetadata, className: string): void {
  for (const { per, limit } of limitsOf(grant)) {
    if (!parseLimit(limit))
      throw new Error(`${className}: attempts: the limit must be COUNT/SECONDS, for example 5/600`);
    const parameters = declaredProperties(grant.body);
    const unknown = per.find((name) => name !== 'network' && !parameters.includes(name));
    if (unknown !== undefined)
      throw new Error(`${className}: attempts: "${unknown}" is not a parameter of ${grant.body.name}`);
    if (per.length === 0) throw new Error(`${className}: attempts: per must name what is counted`);
  }
}

/** Parameters are hashed: they may be long or personal. A flood of keys of one limit must not displace another's. */
function attemptsOf(grant: GrantMetadata, body: GrantBody): Attempt[] {
  return limitsOf(grant).map(({ per, limit }, index) => {
    const values = per.map((name) => (name === 'network' ? 'network' : comparable(Reflect.get(body, name))));
    const account = sha256(JSON.stringify([grant.name, index, values]));
    const keys = per.includes('network')
      ? keysOfIp(requestContext.required().ip, account)
      : [{ key: account, factor: 1 }];
    return { limit: `${ATTEMPTS}:${grant.name}:${index}`, rule: parseLimit(limit) as RateLimitRule, keys };
  });
}

function limitsOf({ attempts = [] }: GrantMetadata): DeclaredAttemptLimit[] {
  return [attempts].flat() as DeclaredAttemptLimit[];
}

function comparable(value: unknown): unknown {
  return typeof value === 'string' ? withoutTrailingSpaces(value) : (value ?? null);
}
