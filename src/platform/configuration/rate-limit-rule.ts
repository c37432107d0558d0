import { rule } from '../validation/validation.js';

/**
 * The limits: new customers and browsers per network, token requests per client, transfers per customer, revocations and
 * `forget` per end site (protocol §2.14).
 */
export type LimitName = 'identities' | 'tokens' | 'transfers' | 'revocations' | 'forgets';

/** At most `count` requests in `seconds`. */
export interface RateLimitRule {
  count: number;
  seconds: number;
}

/** A rule as text, `COUNT/SECONDS`: `30/300` is 30 requests in 300 seconds. */
export type LimitText = `${number}/${number}`;

/** The limits that an extension declares, by their names in snake_case: `{ qr_guess: '30/300' }`. */
export type LimitDeclarations = Readonly<Record<string, LimitText>>;

/** The rules of the service's limits, and those of an extension's limits that RATE_LIMIT names. */
export type RateLimitRules = Record<LimitName, RateLimitRule> & Record<string, RateLimitRule>;

export const DEFAULT_LIMITS: RateLimitRules = {
  identities: { count: 120, seconds: 60 },
  tokens: { count: 60_000, seconds: 60 },
  transfers: { count: 60, seconds: 60 },
  revocations: { count: 120, seconds: 60 },
  forgets: { count: 120, seconds: 60 },
};
const RULE = /^([1-9]\d{0,8})\/([1-9]\d{0,4})$/;
const NAMED_RULE = /^([a-z][a-z0-9_]{0,63})=(.*)$/;

export function parseLimit(text: string): RateLimitRule | undefined {
  const [, count, seconds] = RULE.exec(text) ?? [];
  return count === undefined ? undefined : { count: Number(count), seconds: Number(seconds) };
}

/** Invalid text is returned unchanged. `limitRules` checks the names, because an extension may declare further ones. */
export function parseRateLimit(text: unknown): unknown {
  if (text === 'off' || typeof text !== 'string') return text;
  const rules = { ...DEFAULT_LIMITS };
  const names = new Set<string>();
  for (const entry of text.split(',')) {
    const [, name, ruleText = ''] = NAMED_RULE.exec(entry.trim()) ?? [];
    const limit = parseLimit(ruleText);
    if (name === undefined || !limit || names.has(name)) return text;
    names.add(name);
    rules[name] = limit;
  }
  return rules;
}

export const IsRateLimit = () =>
  rule(
    'isRateLimit',
    (value) => value === 'off' || typeof value === 'object',
    'must be off, or a list with each limit at most once: identities=COUNT/SECONDS, tokens=…, transfers=…, revocations=… and forgets=…',
  );
