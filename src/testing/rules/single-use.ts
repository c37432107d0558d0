import { setTimeout as sleep } from 'node:timers/promises';
import { TOKEN } from '../house.js';
import { FOREIGN_SITE, UNLISTED_SITE } from '../kit-registry.js';
import { race, WAYS } from '../race.js';
import { about, type Rule, type RulesOn } from '../rule.js';
import type { Trial } from '../trial.js';

/** What is good once is good once: in turn, at once, and on every process of the service. */
export const singleUseRules: RulesOn = (_declared, { singleUse }) => (singleUse ? GOOD_ONCE : [GOOD_AGAIN]);

const GOOD_AGAIN: Rule = {
  title: 'gives a token to the same request again, since the kit was not told `singleUse`',
  async check(trial) {
    const sent = await trial.body();
    await trial.granted(sent);
    await about('if a request is good once, tell the kit `singleUse: true`', () => trial.granted(sent));
  },
};

const GOOD_ONCE: Rule[] = [
  {
    title: 'gives no second token to a request that has got one',
    async check(trial) {
      const sent = await trial.body();
      await trial.granted(sent);
      await trial.refused({ error: 'invalid_grant' }, sent);
      await sleep(50); // what comes later is no part of a race
      await trial.refused({ error: 'invalid_grant' }, sent);
    },
  },
  {
    title: 'knows on every process of the service what was used, and gives one token to 20 that use it at once',
    async check(trial) {
      const second = await trial.secondService();
      try {
        const sent = await trial.body();
        await trial.granted(sent);
        const headers = await trial.callerHeaders();
        const elsewhere = await second.post(TOKEN, sent, headers);
        if (elsewhere.status === 200) throw new Error('a token of another process; keep in the database what was used');
        for (let round = 0; round < 3; round++) await raceOf(trial, [trial.house.service, second]);
      } finally {
        await second.stop();
      }
    },
  },
  {
    title: 'does not use up what it refuses',
    async check(trial) {
      const sent = await trial.body();
      await trial.refused({}, { ...sent, client_id: UNLISTED_SITE });
      await trial.refused({}, { ...sent, client_id: FOREIGN_SITE });
      await trial.refused({}, sent, { headers: { origin: 'https://evil.example' } });
      await trial.granted(sent);
    },
  },
];

async function raceOf(trial: Trial, services: { url: string }[]): Promise<void> {
  const sent = await trial.body();
  const answers = await race(services, TOKEN, JSON.stringify(sent), WAYS, await trial.callerHeaders());
  const winners = answers.filter(({ status }) => status === 200);
  if (winners.length !== 1)
    throw new Error(`${winners.length} of ${WAYS} got a token: ${answers.map(({ status }) => status)}`);
  for (const answer of answers) {
    await trial.insist(answer, { body: sent });
    if (answer !== winners[0] && answer.body.error !== 'invalid_grant')
      throw new Error(`a loser is told ${answer.text}`);
  }
  const headers = { authorization: `Bearer ${winners[0]?.body.access_token}` };
  const { status } = await trial.house.service.send('GET', '/v2/customer/info', headers);
  if (status !== 200) throw new Error("the winner's token is not good");
}
