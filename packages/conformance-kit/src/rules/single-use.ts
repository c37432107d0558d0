import { setTimeout as sleep } from 'node:timers/promises';
import { about } from '../cases.js';
import type { GrantTestContext, Rule, RuleSet } from '../grant-test-context.js';
import { FOREIGN_SITE, UNLISTED_SITE } from '../kit-registry.js';
import { REQUESTS_PER_RACE, race, withInterleavedStatements } from '../race.js';
import { TOKEN } from '../test-environment.js';
import type { TestService } from '../test-service.js';

const REDEEM_ONCE = 'redeem the proof by one UPDATE with all checks in its WHERE, and only if it changes a row';

/** A single-use request gets one token: sent one after another, at the same time, and to different processes. */
export const singleUseRules: RuleSet = (_declared, { singleUse }) => (singleUse ? SINGLE_USE : [REPEATABLE]);

const REPEATABLE: Rule = {
  title: 'gives a token to a repeated request, because the test does not declare `singleUse`',
  async check(context) {
    const parameters = await context.body();
    await context.expectToken(parameters);
    await about('if a request is valid only once, declare `singleUse: true` in the test', () =>
      context.expectToken(parameters),
    );
  },
};

const SINGLE_USE: Rule[] = [
  {
    title: 'gives no second token to a repeated request',
    async check(context) {
      const parameters = await context.body();
      await context.expectToken(parameters);
      const refuse = () => context.expectError({ error: 'invalid_grant' }, parameters);
      await about(REDEEM_ONCE, refuse);
      await sleep(50); // a later request, after the window in which a repeated request counts as a race
      await about(REDEEM_ONCE, refuse);
    },
  },
  {
    title: 'gives one token to 20 concurrent requests, and none to a later request on another process',
    showsMoreOnServer: true,
    async check(context) {
      const second = await context.secondService();
      try {
        const parameters = await context.body();
        await context.expectToken(parameters);
        const headers = await context.callerHeaders();
        const otherResponse = await second.post(TOKEN, parameters, headers);
        if (otherResponse.status === 200)
          throw new Error('another process gave a second token; store used requests in the database');
        for (let round = 0; round < 3; round++) await raceOf(context, [context.environment.service, second]);
      } finally {
        await second.stop();
      }
    },
  },
  {
    title: 'does not use up a request that it refuses',
    async check(context) {
      const parameters = await context.body();
      await context.expectError({}, { ...parameters, client_id: UNLISTED_SITE });
      await context.expectError({}, { ...parameters, client_id: FOREIGN_SITE });
      await context.expectError({}, parameters, { headers: { origin: 'https://evil.example' } });
      await context.expectToken(parameters);
    },
  },
];

async function raceOf(context: GrantTestContext, services: TestService[]): Promise<void> {
  const parameters = await context.body();
  const text = JSON.stringify(parameters);
  const callerHeaders = await context.callerHeaders();
  const responses = await withInterleavedStatements(services, () =>
    race(services, TOKEN, text, REQUESTS_PER_RACE, callerHeaders),
  );
  const winners = responses.filter(({ status }) => status === 200);
  if (winners.length !== 1)
    throw new Error(
      `${winners.length} of ${REQUESTS_PER_RACE} got a token; ${REDEEM_ONCE}: ${responses.map(({ status }) => status)}`,
    );
  for (const response of responses) {
    await context.assertValid(response, { body: parameters });
    if (response !== winners[0] && response.body.error !== 'invalid_grant')
      throw new Error(`not refused with invalid_grant after another request won the race: ${response.text}`);
  }
  const headers = { authorization: `Bearer ${winners[0]?.body.access_token}` };
  const { status } = await context.environment.service.send('GET', '/v2/customer/info', headers);
  if (status !== 200) throw new Error('the token of the race is not valid');
}
