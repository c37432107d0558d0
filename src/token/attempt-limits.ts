import { Injectable } from '@nestjs/common';
import { ATTEMPTS, type LimitedKeys, Limits } from '../oauth/limits.js';
import { errorOf } from '../oauth/thrown-error.js';
import { parseLimit, type RateLimitRule } from '../platform/configuration/rate-limit-rule.js';
import { keysOfIp } from '../platform/network.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { sha256 } from '../platform/secret.js';
import { withoutTrailingSpaces } from '../platform/validation/text-rules.js';
import { declaredProperties } from '../platform/validation/validation.js';
import type { DeclaredAttemptLimit, GrantBody, GrantMetadata, GrantResult } from './grant.js';

/**
 * Limits the requests that a grant refuses (protocol §10.2). A request counts before it runs, because it may be
 * refused. So parallel requests cannot guess more often than the limit allows. If the grant does not refuse it, it is
 * given back.
 */
@Injectable()
export class AttemptLimits {
  constructor(private readonly limits: Limits) {}

  /** @throws OAuthError 429 if a limit is reached; of `work` */
  async run(grant: GrantMetadata, parameters: GrantBody, work: () => Promise<GrantResult>): Promise<GrantResult> {
    if (!this.limits.limitAttempts) return work();
    const counted = this.limits.takeEach(attemptsOf(grant, parameters), ATTEMPTS);
    try {
      const result = await work();
      counted.giveBack();
      return result;
    } catch (error) {
      if (!isRefusal(error)) counted.giveBack();
      throw error;
    }
  }
}

/** Whether the grant has refused the proof. A pending request, a limit and an outage say nothing about the proof. */
function isRefusal(error: unknown): boolean {
  const { status, isPending } = errorOf(error);
  return status < 500 && status !== 429 && !isPending;
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
function attemptsOf(grant: GrantMetadata, body: GrantBody): LimitedKeys[] {
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
  return typeof value === 'string' ? withoutTrailingSpaces(value) : value;
}
