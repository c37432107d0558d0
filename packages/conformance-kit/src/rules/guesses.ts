import { about } from '../cases.js';
import type { GuessableParameter } from '../grant-kit.js';
import type { GrantTestContext } from '../grant-test-context.js';
import { winsMostRaces } from '../guess-race.js';
import { provingParameters } from '../proof.js';
import { predictedParameters } from '../repeatable-random.js';
import type { Rule, RuleSet } from '../rule.js';
import { assertNoShortParameter, NO_SHORT_PARAMETER } from '../short-parameters.js';
import { limitsSpellings } from './guess-spellings.js';
import { guess, rightValueWinsRace } from './wrong-guesses.js';

const COUNT_FIRST = 'count each guess before you compare its value';

/** No caller guesses a proof. With `agentScope` the bearer token is a proof that no caller guesses. */
export const guessRules: RuleSet = ({ agentScope }, { guessable }) => [
  ...(agentScope === undefined ? [FROM_SECURE_RANDOM] : []),
  ...(agentScope === undefined && guessable === undefined ? [UNGUESSABLE] : []),
  ...(guessable ? [limitsGuesses(guessable), limitsSpellings(guessable)] : []),
];

const UNGUESSABLE: Rule = {
  title: NO_SHORT_PARAMETER,
  async check(context) {
    const [one, other] = [await context.body(), await context.body()];
    const { isPublicId } = context.environment;
    const names = provingParameters(context, one, other).filter((name) => !isPublicId(`${one[name]}`));
    assertNoShortParameter([one, other], names, 'create it with randomSecret(), or limit the guesses');
  },
};

const FROM_SECURE_RANDOM: Rule = {
  title: 'does not create proofs with Math.random()',
  async check(context) {
    const names = provingParameters(context, await context.body(), await context.body());
    const predicted = await predictedParameters(names, () => context.body());
    if (predicted.length === 0) return;
    throw new Error(`${predicted}: repeats when Math.random() repeats its numbers; create it with randomSecret()`);
  },
};

function limitsGuesses(guessable: GuessableParameter): Rule {
  const { parameter, limit } = guessable;
  return {
    title: `refuses a right proof after ${limit} wrong guesses, because the test declares \`guessable\``,
    showsMoreOnServer: true,
    async check(context) {
      await context.withLimits(async (service) => {
        const parameters = await context.body();
        if (limit > 1) await guess(context, service, parameters, guessable, 1);
        const { url } = service;
        await about('the right value after one wrong guess', () => context.expectToken(parameters, { url }));
      });
      await context.withLimits(async (service) => {
        const parameters = await context.body();
        await guess(context, service, parameters, guessable);
        const { status } = await context.send(parameters, { url: service.url });
        if (status === 200)
          throw new Error(`${parameter}: the right value gets a token after ${limit} wrong guesses at the same time`);
      });
      if (await winsMostRaces(guessable, () => winsRace(context, guessable)))
        throw new Error(`${parameter}: the right value gets a token among many wrong ones; ${COUNT_FIRST}`);
    },
  };
}

async function winsRace(context: GrantTestContext, guessable: GuessableParameter): Promise<boolean> {
  let wins = false;
  await context.withLimits(async (service) => {
    wins = await rightValueWinsRace(context, service, guessable);
  });
  return wins;
}
