import { ValidateBy } from 'class-validator';

/**
 * The limits: new identities per network, token requests and transfers per client, transfers per customer, sign-ins per
 * account and network (protocol §2.14).
 */
export type LimitName = 'identities' | 'tokens' | 'transfers' | 'sign_in';

/** At most `count` requests in `seconds`. */
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

/**
 * Parses `off` or a list like `identities=60/60,tokens=6000/60`. Other limits keep their defaults. Returns invalid text
 * as is.
 */
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
