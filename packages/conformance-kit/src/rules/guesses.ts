import { randomInt } from 'node:crypto';
import { about } from '../cases.js';
import type { GuessableParameter } from '../grant-kit.js';
import type { GrantTestContext, Rule, RuleSet } from '../grant-test-context.js';
import { estimatedBits, GuessValues } from '../guess-values.js';
import type { TestResponse } from '../http-client.js';
import { raceOfBodies, withInterleavedStatements } from '../race.js';
import { TOKEN } from '../test-environment.js';
import type { TestService } from '../test-service.js';
import type { Parameters } from '../token-request.js';
import { fromSecureRandom, unguessable } from './proof-values.js';

const LIMIT = 'create it with randomSecret(), or limit the guesses';
const countAll = (parameter: string) =>
  `declare \`attempts\`, without ${parameter} in \`per\`, or count each guess in the row of the proof`;
const COUNT_FIRST = 'count each guess before you compare its value';

/** No caller guesses a proof. With `agentScope` the bearer token is a proof that no caller guesses. */
export const guessRules: RuleSet = ({ agentScope, attempts }, { guessable, lifetime }) => [
  ...(agentScope === undefined ? [fromSecureRandom()] : []),
  ...(agentScope === undefined && guessable === undefined ? [unguessable(LIMIT)] : []),
  ...(guessable ? [limitsGuesses(guessable), limitsSpellings(guessable)] : []),
  ...(guessable && attempts && typeof lifetime === 'number'
    ? [limitsGuessesFor(lifetime, guessable, [attempts].flat())]
    : []),
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
      if (
        await winsMostRaces(guessable, () =>
          context.withLimits((service) => rightValueWinsRace(context, service, guessable)),
        )
      )
        throw new Error(`${parameter}: the right value gets a token among many wrong ones; ${COUNT_FIRST}`);
    },
  };
}

/** A value of so few bits is no longer hard to guess after so many times the declared guesses. */
const MAX_SHORT_BITS = 32;
const MAX_GUESS_RATIO = 10;

/** Windows of `attempts` that are much shorter than the lifetime of a proof admit guesses again and again. */
function limitsGuessesFor(lifetime: number, guessable: GuessableParameter, limits: readonly { limit: string }[]): Rule {
  const { parameter, limit } = guessable;
  return {
    title: 'limits the guesses for the lifetime of a short proof, because the test declares `guessable` and `lifetime`',
    check: (context) =>
      context.withLimits(async (service) => {
        const windows = limits.map((each) => each.limit.split('/').map(Number) as [count: number, seconds: number]);
        const guessCount = Math.min(...windows.map(([count, seconds]) => Math.floor((count * lifetime) / seconds)));
        const parameters = await context.body();
        const isShort = estimatedBits(`${parameters[parameter]}`) <= MAX_SHORT_BITS;
        if (!isShort || guessCount < limit * MAX_GUESS_RATIO) return;
        await guess(context, service, parameters, guessable);
        service.clock.advance({ seconds: Math.max(...windows.map(([, seconds]) => seconds)) + 1 });
        const { status } = await context.send(parameters, { url: service.url });
        if (status !== 200) return;
        const guesses = `${guessCount} guesses in its lifetime of ${lifetime} s`;
        throw new Error(`${parameter}: \`attempts\` admits ${guesses}; choose a window of at least this lifetime`);
      }),
  };
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
function variable({ ownParameters }: GrantTestContext, body: Parameters, change: (text: string) => string): string[] {
  return ownParameters.filter((name) => {
    const { [name]: value } = body;
    return typeof value === 'string' && change(value) !== value;
  });
}

const swapCase = (letter: string) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase());

/** In a race the right value is one of more than ten times as many values as the limit admits. */
const WRONG_VALUE_RATIO = 10;
const MIN_WRONG_COUNT = 20;
/** With a higher limit the race would have more requests than a service answers at the same time. */
const MAX_LIMIT_COUNT = 20;
/** A grant that counts each guess before it compares the value wins so many races less than once in a million runs. */
const ROUND_COUNT = 10;
const MAX_LOST_COUNT = 2;
/** How often the kit replaces values that are no guesses. */
const MAX_ROUND_COUNT = 20;

/** Sends wrong values at the same time. A value that the grant answers with `invalid_request` is no guess. */
async function guess(
  context: GrantTestContext,
  service: TestService,
  parameters: Parameters,
  guessable: GuessableParameter,
  count = guessable.limit,
): Promise<void> {
  const { parameter } = guessable;
  const wrong = wrongValuesOf(context, parameters, guessable);
  let remaining = count;
  for (let round = 0; remaining > 0 && round < MAX_ROUND_COUNT; round++) {
    const bodies = wrong.take(remaining).map((value) => ({ ...parameters, [parameter]: value }));
    const responses = await raceOfRequests(context, service, bodies);
    for (const [index, response] of responses.entries()) await context.assertValid(response, { body: bodies[index] });
    if (responses.some(({ status }) => status === 200)) throw new Error(`${parameter}: a wrong value gets a token`);
    remaining = responses.filter(({ body }) => body.error === 'invalid_request').length;
  }
  if (remaining === 0) return;
  const solution =
    'throw invalidGrant for a wrong value, or return values that the grant accepts by `wrong` of `guessable`';
  throw new Error(
    `${parameter}: the grant answers wrong values with invalid_request, so they are no guesses; ${solution}`,
  );
}

/**
 * Whether the right value gets a token at a random place among many wrong ones at the same time. A race in which a slow
 * machine responds with 503 shows nothing, so it counts as lost.
 */
async function rightValueWinsRace(
  context: GrantTestContext,
  service: TestService,
  guessable: GuessableParameter,
): Promise<boolean> {
  const { parameter } = guessable;
  const parameters = await context.body();
  const race = guessRace(guessable, wrongValuesOf(context, parameters, guessable), `${parameters[parameter]}`);
  if (!race) return false;
  const bodies = race.values.map((value) => ({ ...parameters, [parameter]: value }));
  const responses = await raceOfRequests(context, service, bodies);
  const isGuess = ({ status, body }: TestResponse) => [400, 429].includes(status) && body.error !== 'invalid_request';
  return responses.every((response, index) => (index === race.at ? response.status === 200 : isGuess(response)));
}

function wrongValuesOf({ declared, issued }: GrantTestContext, parameters: Parameters, guessable: GuessableParameter) {
  return new GuessValues(guessable, declared.body, parameters, issued);
}

async function raceOfRequests(
  context: GrantTestContext,
  service: TestService,
  bodies: Parameters[],
): Promise<TestResponse[]> {
  const texts = bodies.map((body) => JSON.stringify(body));
  const headers = await context.callerHeaders();
  return withInterleavedStatements([service], () => raceOfBodies([service], TOKEN, texts, headers));
}

/** What a race sends: the wrong values, and the right one at a random place. */
interface GuessRace {
  values: string[];
  at: number;
}

/**
 * Whether the right value wins most races. It wins one by chance if it is among the first `limit` values that are
 * counted. It wins most if all values are compared before the wrong ones are counted.
 *
 * @param wins does a race with a new proof, and returns whether the right value wins it
 */
export async function winsMostRaces({ limit }: GuessableParameter, wins: () => Promise<boolean>): Promise<boolean> {
  if (limit > MAX_LIMIT_COUNT) return false;
  let lostCount = 0;
  for (let round = 0; round < ROUND_COUNT && lostCount <= MAX_LOST_COUNT; round++) if (!(await wins())) lostCount++;
  return lostCount <= MAX_LOST_COUNT;
}

/** Returns `undefined` if there are too few wrong values for a race. */
export function guessRace({ limit }: GuessableParameter, wrong: GuessValues, right: string): GuessRace | undefined {
  const count = Math.max(MIN_WRONG_COUNT, limit * WRONG_VALUE_RATIO);
  const values = [...new Set(wrong.takeUpTo(count))].filter((value) => value !== right);
  if (values.length < count) return undefined;
  const at = randomInt(count + 1);
  return { values: values.toSpliced(at, 0, right), at };
}
