import {
  DEFAULT_LIMITS,
  type LimitDeclarations,
  parseLimit,
  type RateLimitRule,
  type RateLimitRules,
} from '../configuration/rate-limit-rule.js';
import { SNAKE_CASE_NAME } from '../snake-case-name.js';

/** The limit of refused requests, whose rules the grants declare. */
export const ATTEMPTS = 'attempts';
const RESERVED = [...Object.keys(DEFAULT_LIMITS), ATTEMPTS, 'off'];

/**
 * The rules of all limits: those of the service, those that an extension declares, and their changes by RATE_LIMIT.
 *
 * @throws Error that names the limit, if an extension declares it wrongly or RATE_LIMIT names an unknown limit
 */
export function limitRules(configured: RateLimitRules, declared: LimitDeclarations): Record<string, RateLimitRule> {
  const rules: Record<string, RateLimitRule> = { ...DEFAULT_LIMITS };
  for (const [name, text] of Object.entries(declared)) rules[name] = declaredRule(name, text);
  for (const [name, rule] of Object.entries(configured)) {
    if (!Object.hasOwn(rules, name)) throw new Error(`RATE_LIMIT: ${name}: no limit has this name`);
    rules[name] = rule;
  }
  return rules;
}

function declaredRule(name: string, text: string): RateLimitRule {
  if (RESERVED.includes(name)) throw new Error(`limits.${name}: is a limit of the service; rename yours`);
  if (!SNAKE_CASE_NAME.test(name)) throw new Error(`limits.${name}: must be a name in snake_case; rename it`);
  const rule = parseLimit(text);
  if (!rule) throw new Error(`limits.${name}: must be COUNT/SECONDS, for example 30/300`);
  return rule;
}
