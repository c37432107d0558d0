import { about } from '../cases.js';
import { ownParameters } from '../secret-search.js';
import type { Parameters } from '../token-request.js';
import type { RouteKit } from './route-kit.js';
import type { RouteRule } from './route-test-context.js';

const LIMIT_THEM = 'take from a limit for this text by `Limits.take` before the message is sent';

/** A route without bearer tokens sends a limited number of messages to the same person. */
export function routeResendRules({ callers, resends }: RouteKit): RouteRule[] {
  if (typeof resends === 'number') return [limitsResends(resends)];
  return callers.length === 0 && resends === undefined ? [DECLARES_RESENDS] : [];
}

const DECLARES_RESENDS: RouteRule = {
  title: 'has a test that declares `resends`, if the caller names a text in a request without a bearer token',
  async check(context) {
    const { body } = context;
    const { guessable } = context.kit;
    const parameters = ((await context.valid()).body ?? {}) as Parameters;
    const guessed = guessable ? guessable.parameter : undefined;
    const names = body ? ownParameters(body.declared.body) : [];
    const named = names.filter((name) => name !== guessed && typeof parameters[name] === 'string');
    if (named.length === 0) return;
    const declaration = 'declare how many requests for the same text succeed as `resends: …`';
    throw new Error(`${named}: ${declaration}, or \`resends: false\` if the route sends nothing to it`);
  },
};

function limitsResends(count: number): RouteRule {
  return {
    title: `refuses a repeated request with 429 after ${count} requests, because the test declares \`resends\``,
    check: (context) =>
      context.withLimits(async ({ url }) => {
        const sent = { ...(await context.valid()), url };
        for (let number = 1; number <= count; number++)
          await about(`request ${number} of ${count}`, () => context.expectSuccess(sent));
        await about(`one request more; ${LIMIT_THEM}`, () => context.expectError([429], sent));
      }),
  };
}
