import { type GrantMetadata, Purge } from '@customer-authorization/service/testing-host';
import type { GrantRule, GrantSubject } from '../grant-subject.js';
import { race, withInterleavedStatements } from '../race.js';
import type { SentRequest } from '../request.js';
import { about } from '../rule.js';
import type { TestService } from '../test-service.js';

const COUNT_ATOMICALLY =
  'redeem the proof by `OneTimeCodes` or `UseCounter`, or by one UPDATE with all checks in its WHERE';
const OPT_OUT = "declare uses: 'unlimited' in @GrantType if a proof works again and again";
const REFUSALS = ['invalid_grant', 'expired_token', 'access_denied'];
/** Requests of a race, if they are more than the uses of the proof. */
const MIN_RACE_REQUESTS = 20;
const MAX_RACE_ROUNDS = 3;
/** With more uses, a race would have more requests than a service answers at the same time. */
const MAX_RACED_USES = 30;
const HOUR_SECONDS = 3_600;
/** The ages of a used proof at which the kit tries it again, if the grant declares no lifetime. */
const AGES_SECONDS = [HOUR_SECONDS, 24 * HOUR_SECONDS, 30 * 24 * HOUR_SECONDS, 400 * 24 * HOUR_SECONDS];

/** A proof gives as many tokens as `uses` declares; by default one. */
export function useRules({ uses = 1, lifetime }: GrantMetadata): GrantRule[] {
  if (uses === 'unlimited') return [];
  return [
    {
      title: `gives ${uses} token${uses === 1 ? '' : 's'} for a proof, and none to a further request`,
      async check(subject) {
        const sent = await usedUp(subject, uses);
        const refuse = () =>
          about(`${COUNT_ATOMICALLY}; ${OPT_OUT}`, () => subject.expectError(sent, 400, ...REFUSALS));
        await refuse();
      },
    },
    ...(uses > MAX_RACED_USES ? [] : [raced(uses)]),
    {
      title: 'gives no further token after the deletion of expired rows',
      async check(subject) {
        const { application, clock } = subject.service;
        for (const seconds of lifetime === undefined ? AGES_SECONDS : [lifetime * 0.9]) {
          await clock.whileStopped(async () => {
            const sent = await usedUp(subject, uses);
            clock.advance({ seconds });
            await application.get(Purge).run();
            const solution = 'keep the row of its use until the proof itself expires';
            await subject.expectNoToken(sent, `a proof that was used up ${seconds} s ago`, solution);
          });
        }
      },
    },
  ];
}

/** A proof that has got all its tokens. */
async function usedUp(subject: GrantSubject, uses: number): Promise<SentRequest> {
  const sent = await subject.create();
  for (let use = 1; use <= uses; use++) await about(`use ${use} of ${uses}`, () => subject.expectSuccess(sent));
  return sent;
}

function raced(uses: number): GrantRule {
  return {
    title: `gives ${uses} token${uses === 1 ? '' : 's'} to concurrent requests on two processes`,
    check: (subject) =>
      subject.withSecondService(async (second) => {
        for (let round = 0; round < MAX_RACE_ROUNDS; round++) await raceOf(subject, [subject.service, second], uses);
      }),
  };
}

async function raceOf(subject: GrantSubject, services: TestService[], uses: number): Promise<void> {
  const sent = await subject.create();
  const count = Math.max(MIN_RACE_REQUESTS, 2 * uses);
  const responses = await withInterleavedStatements(services, () =>
    race(services, sent.path, JSON.stringify(sent.body), count, sent.headers),
  );
  const tokens = responses.filter(({ status }) => status === 200).length;
  const statuses = responses.map(({ status }) => status);
  if (tokens !== uses) throw new Error(`${tokens} of ${count} got a token; ${COUNT_ATOMICALLY}: ${statuses}`);
  for (const response of responses) {
    subject.assertResponse(sent, response);
    if (response.status !== 200 && !REFUSALS.includes(response.body.error))
      throw new Error(`not refused with invalid_grant after other requests won the race: ${response.text}`);
  }
}
