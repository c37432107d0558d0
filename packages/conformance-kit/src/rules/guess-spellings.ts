import { about } from '../cases.js';
import type { GuessableParameter } from '../grant-kit.js';
import type { GrantTestContext } from '../grant-test-context.js';
import type { Rule } from '../rule.js';
import { ownParameters } from '../secret-search.js';
import type { Parameters } from '../token-request.js';
import { guess } from './wrong-guesses.js';

/** A database may ignore these differences when it compares texts. */
const SPELLINGS: [what: string, change: (text: string) => string][] = [
  ['with a trailing space', (text) => `${text} `],
  ['in the other case', (text) => text.replace(/[a-z]/gi, swapCase)],
];

/** Another spelling of a value, for which a grant could count the guesses separately. */
export function limitsSpellings(guessable: GuessableParameter): Rule {
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
