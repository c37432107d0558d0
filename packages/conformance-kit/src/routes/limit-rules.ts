import { RateLimits } from 'customer-authorization-service/testing-host';
import { wrongValue } from '../text-guesses.js';
import type { RouteKit } from './route-kit.js';
import type { RouteRule, RouteTestContext } from './route-test-context.js';

/** A route takes from the limits of its extension. No other rule detects a limit that has no effect. */
export function routeLimitRules({ limits = {}, otherLimits = [] }: RouteKit): RouteRule[] {
  const names = Object.keys(limits).filter((name) => !otherLimits.includes(name));
  return names.length > 0 ? [takesFrom(names)] : [];
}

function takesFrom(names: string[]): RouteRule {
  return {
    title: 'takes from each limit of its extension, except those in `otherLimits` of the test',
    async check(context) {
      const taken = await limitsTakenDuring(context, () => sendRightAndWrong(context));
      const untaken = names.filter((name) => !taken.has(name));
      if (untaken.length === 0) return;
      const solution = 'call `Limits.take` or `takeForNetwork` before the work';
      const optOut = 'if only another route or grant takes from the limit, list it in `otherLimits` of the test';
      throw new Error(`${untaken.join(', ')}: no request takes from this limit; ${solution}; ${optOut}`);
    },
  };
}

/** Some limits count valid requests, and others only wrong ones. */
async function sendRightAndWrong(context: RouteTestContext): Promise<void> {
  const sent = await context.valid();
  for (const [name, value] of Object.entries(typeof sent.body === 'object' ? sent.body : {}))
    if (typeof value === 'string')
      await context.send({ ...sent, body: { ...(sent.body as object), [name]: wrongValue(value, 0) } });
  await context.send(await context.valid());
}

/** The names of the limits that are taken from. The limits of the service under test are off, and count no request. */
async function limitsTakenDuring(
  { environment }: RouteTestContext,
  work: () => Promise<unknown>,
): Promise<Set<string>> {
  const limits = environment.service.application.get(RateLimits, { strict: false });
  const taken = new Set<string>();
  const { takeReturnable } = limits;
  limits.takeReturnable = (limit, keys) => {
    taken.add(limit);
    return takeReturnable.call(limits, limit, keys);
  };
  try {
    await work();
  } finally {
    limits.takeReturnable = takeReturnable;
  }
  return taken;
}
