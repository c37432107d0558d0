import { setTimeout as sleep } from 'node:timers/promises';
import { OAuthError } from '@customer-authorization/service/grant';
import { GrantSubject } from '../grant-subject.js';
import type { CommonKit } from '../kit.js';
import { type ReplacedProvider, recordCalls } from '../replaced-providers.js';
import { about, type Rule } from '../rule.js';
import type { Subject } from '../subject.js';
import type { UpstreamFailure, UpstreamServer } from '../upstream.js';

/** Long enough for what a response does not wait for. */
const AFTERMATH_MS = 50;
const FAILURES: UpstreamFailure[] = ['responds with 500', 'closes the connection', 'does not respond'];
const UNAVAILABLE =
  'give the call a time-out below 10 s, such as AbortSignal.timeout(3_000), check the status of its response, and throw OAuthError.unavailable(cause)';

/** What happens while other systems are unavailable. */
export function providerRules({ replace = [], upstream }: CommonKit): Rule<Subject>[] {
  return [...(replace.length > 0 ? [awaits(replace)] : []), ...(upstream ? [SURVIVES_UPSTREAM] : [])];
}

function awaits(replace: readonly ReplacedProvider[]): Rule<Subject> {
  return {
    title: 'awaits each call of the providers of `replace`, or catches its rejection',
    async check(subject) {
      const fail = () => Promise.reject(OAuthError.unavailable(new Error('a failure of the conformance kit')));
      const work = async () => {
        // the failure may be that of `valid`, or of the response
        await subject
          .create()
          .then((sent) => subject.send(sent))
          .catch(() => undefined);
        await sleep(AFTERMATH_MS);
      };
      await recordCalls(replace, work, fail);
    },
  };
}

const SURVIVES_UPSTREAM: Rule<Subject> = {
  title: 'responds with 503 within 10 s if the real system fails or does not respond',
  check: (subject) =>
    subject.withSecondService(
      async ({ url }) => {
        const upstream = subject.upstream as UpstreamServer;
        for (const failure of FAILURES) {
          const sent = { ...(await subject.create()), url };
          const countBefore = upstream.requestCount;
          upstream.failure = failure;
          const { status } = await about(`the system ${failure}; ${UNAVAILABLE}`, () => subject.exchange(sent)).finally(
            () => {
              upstream.failure = undefined;
            },
          );
          if (upstream.requestCount === countBefore) {
            if (subject instanceof GrantSubject) return; // a route calls the system
            throw new Error('no request reached `upstream`; does the class read the variable when the service starts?');
          }
          if (status !== 503) throw new Error(`${status} if the system ${failure}; ${UNAVAILABLE}`);
          await sleep(AFTERMATH_MS);
          await about(`after the system ${failure}`, () => subject.expectSuccess(sent));
        }
      },
      { replace: [] },
    ),
};
