import { about } from '../cases.js';
import type { GuessableParameter } from '../grant-kit.js';
import type { GrantTestContext } from '../grant-test-context.js';
import type { Rule, RuleSet } from '../rule.js';
import { ownParameters } from '../secret-search.js';
import type { Parameters } from '../token-request.js';
import { fromSecureRandom, unguessable } from './proof-values.js';
import { guess, rightValueWinsRace, winsMostRaces } from './wrong-guesses.js';

const LIMIT = 'create it with randomSecret(), or limit the guesses';
const countAll = (parameter: string) =>
  `declare \`attempts\`, without ${parameter} in \`per\`, or count each guess in the row of the proof`;
const COUNT_FIRST = 'count each guess before you compare its value';

/** No caller guesses a proof. With `agentScope` the bearer token is a proof that no caller guesses. */
export const guessRules: RuleSet = ({ agentScope }, { guessable }) => [
  ...(agentScope === undefined ? [fromSecureRandom()] : []),
  ...(agentScope === undefined && guessable === undefined ? [unguessable(LIMIT)] : []),
  ...(guessable ? [limitsGuesses(guessable), limitsSpellings(guessable)] : []),
];

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
          throw new Error(
            `${parameter}: the right value gets a token after ${limit} wrong guesses at the same time; ${countAll(parameter)}`,
          );
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

/** A database may ignore these differences when it compares texts. */
const SPELLINGS: [what: string, change: (text: string) => string][] = [
  ['with a trailing space', (text) => `${text} `],
  ['in the other case', (text) => text.replace(/[a-z]/gi, swapCase)],
];

/** Another spelling of a value, for which a grant could count the guesses separately. */
function limitsSpellings(guessable: GuessableParameter): Rule {
  const { limit } = guessable;
  return {
    title: 'refuses another spelling of a right proof after too many guesses',
    showsMoreOnServer: true,
    async check(context) {
      for (const [what, change] of SPELLINGS) {
        const names = variable(context, await context.body(), change);
        for (const name of names) {
          await context.withLimits(async (service) => {
            const parameters = await context.body();
            await guess(context, service, parameters, guessable);
            const spelled = { ...parameters, [name]: change(`${parameters[name]}`) };
            const { status } = await about(`${name} ${what}`, () => context.send(spelled, { url: service.url }));
            if (status === 200) throw new Error(`${name} ${what}: gets a token after ${limit} wrong guesses`);
          });
        }
      }
    },
  };
}

/** The names of the grant's own parameters that a spelling changes. */
function variable({ declared }: GrantTestContext, body: Parameters, change: (text: string) => string): string[] {
  return ownParameters(declared.body).filter((name) => {
    const { [name]: value } = body;
    return typeof value === 'string' && change(value) !== value;
  });
}

const swapCase = (letter: string) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase());
