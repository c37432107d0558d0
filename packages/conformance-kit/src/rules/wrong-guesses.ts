import type { GuessableParameter } from '../grant-kit.js';
import type { GrantTestContext } from '../grant-test-context.js';
import { guessRace } from '../guess-race.js';
import { GuessValues } from '../guess-values.js';
import type { TestResponse } from '../http-client.js';
import { withInterleavedStatements } from '../interleaved-statements.js';
import { raceOfBodies } from '../race.js';
import { TOKEN } from '../test-environment.js';
import type { TestService } from '../test-service.js';
import type { Parameters } from '../token-request.js';

/** How often the kit replaces values that are no guesses. */
const MAX_ROUND_COUNT = 20;

/** Sends wrong values at the same time. A value that the grant answers with `invalid_request` is no guess. */
export async function guess(
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
  const solution = 'return values that the grant accepts by `wrong` of `guessable`';
  throw new Error(
    `${parameter}: the grant answers wrong values with invalid_request, so they are no guesses; ${solution}`,
  );
}

/**
 * Whether the right value gets a token at a random place among many wrong ones at the same time. A race in which a slow
 * machine responds with 503 shows nothing, so it counts as lost.
 */
export async function rightValueWinsRace(
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
