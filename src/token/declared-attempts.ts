import { parseLimit, type RateLimitRule } from '../platform/configuration/rate-limit-rule.js';
import { declaredProperties } from '../platform/declared-properties.js';
import { keysOfIp, type LimitKey } from '../platform/rate-limit/limit-key.js';
import { ATTEMPTS } from '../platform/rate-limit/limit-rules.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { sha256 } from '../platform/secret.js';
import { withoutTrailingSpaces } from '../platform/trailing-spaces.js';
import type { DeclaredAttemptLimit } from './attempt-limit.js';
import type { GrantBody } from './grant.js';
import type { GrantMetadata } from './grant-type.decorator.js';

/** A declared limit, with the keys of one request. */
export interface Attempt {
  /** The name of the limit's counts. */
  limit: string;
  rule: RateLimitRule;
  keys: LimitKey[];
}

/**
 * Asserts that the limits of refused requests of a grant are usable.
 *
 * @throws Error
 */
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

/**
 * The limits of a grant, with the keys of a request. Parameters are hashed, because they may be long or personal. Each
 * limit has counts of its own, because a flood of keys of one limit must not remove the keys of another.
 */
export function attemptsOf(grant: GrantMetadata, body: GrantBody): Attempt[] {
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
