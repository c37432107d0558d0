import { setTimeout as sleep } from 'node:timers/promises';
import { GrantSubject } from '../grant-subject.js';
import type { CommonKit } from '../kit.js';
import { about, type Rule } from '../rule.js';
import type { Subject } from '../subject.js';
import type { UpstreamFailure, UpstreamServer } from '../upstream.js';

/** Long enough for a call that a response does not wait for. */
const AFTERMATH_MS = 50;
const FAILURES: UpstreamFailure[] = ['responds with 500', 'closes the connection', 'does not respond'];
const UNAVAILABLE =
  'await the call, give it a time-out below 10 s, such as AbortSignal.timeout(3_000), check the status of its response, and throw OAuthError.unavailable(cause)';

/** What happens while another system is unavailable. */
export function providerRules({ upstream }: CommonKit): Rule<Subject>[] {
  return upstream ? [SURVIVES_UPSTREAM] : [];
}

const SURVIVES_UPSTREAM: Rule<Subject> = {
  title: 'responds with 503 within 10 s if the real system fails or does not respond',
  async check(subject) {
    const upstream = subject.upstream as UpstreamServer;
    for (const failure of FAILURES) {
      const sent = await subject.create();
      const { result, received } = await about(`the system ${failure}; ${UNAVAILABLE}`, () =>
        upstream.during(async () => {
          const response = await subject.exchange(sent);
          await sleep(AFTERMATH_MS);
          return response;
        }, failure),
      );
      if (received.length === 0) {
        if (subject instanceof GrantSubject) return; // a route calls the system
        throw new Error('no request reached `upstream`; does the class read the variable when the service starts?');
      }
      if (result.status !== 503) throw new Error(`${result.status} if the system ${failure}; ${UNAVAILABLE}`);
      await about(`after the system ${failure}`, () => subject.expectSuccess(sent));
    }
  },
};
