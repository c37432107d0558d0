import { ValidateBy } from 'class-validator';

/**
 * What is limited: new identities by network, token requests and transfers by client, transfers by customer, sign-ins by
 * account and network.
 */
export type LimitName = 'identities' | 'tokens' | 'transfers' | 'sign_in';

/** So many in so many seconds. */
export interface RateLimitRule {
  count: number;
  seconds: number;
}

export type RateLimitRules = Record<LimitName, RateLimitRule>;

export const DEFAULT_LIMITS: RateLimitRules = {
  identities: { count: 120, seconds: 60 },
  tokens: { count: 60_000, seconds: 60 },
  transfers: { count: 60, seconds: 60 },
  sign_in: { count: 30, seconds: 900 },
};
const RULE = /^(identities|tokens|transfers|sign_in)=([1-9]\d{0,8})\/([1-9]\d{0,4})$/;

/** Reads `off` or a list like `identities=60/60,tokens=6000/60`; what it leaves out keeps its default. A fault stays as it is. */
export function parseRateLimit(text: unknown): unknown {
  if (text === 'off' || typeof text !== 'string') return text;
  const rules = { ...DEFAULT_LIMITS };
  for (const each of text.split(',')) {
    const [, name, count, seconds] = RULE.exec(each.trim()) ?? [];
    if (name === undefined) return text;
    rules[name as LimitName] = { count: Number(count), seconds: Number(seconds) };
  }
  return rules;
}

export const IsRateLimit = (): PropertyDecorator =>
  ValidateBy({
    name: 'isRateLimit',
    validator: {
      validate: (value) => value === 'off' || typeof value === 'object',
      defaultMessage: () => 'must be off, or a list of identities=COUNT/SECONDS, tokens=…, transfers=… and sign_in=…',
    },
  });
