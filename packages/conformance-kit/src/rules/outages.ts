import { setTimeout as sleep } from 'node:timers/promises';
import { OAuthError } from 'customer-authorization-service/grant';
import { type ReplacedProvider, whileAsyncMethodsFail } from '../replaced-providers.js';
import type { RuleFor, TestContext } from '../test-context.js';

/** Long enough for what a response does not wait for. */
const AFTERMATH_MS = 50;

/** What happens while other systems are unavailable. */
export const outageRules = (replace: readonly ReplacedProvider[] = []): RuleFor<TestContext>[] =>
  replace.length === 0 ? [] : [failsWith(replace)];

function failsWith(replace: readonly ReplacedProvider[]): RuleFor<TestContext> {
  return {
    title: 'awaits each call of the providers of `replace`, or catches its rejection',
    check: async (context) => {
      const fail = () => Promise.reject(OAuthError.unavailable(new Error('a failure of the conformance kit')));
      await whileAsyncMethodsFail(replace, fail, async () => {
        // the failure may be that of `valid`, or of the response
        await context
          .newRequest()
          .then((send) => send({}))
          .catch(() => undefined);
        await sleep(AFTERMATH_MS);
      });
    },
  };
}
