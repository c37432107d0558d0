import type { GuessableParameter } from '../grant-kit.js';
import type { GrantTestContext } from '../grant-test-context.js';
import { GuessValues } from '../guess-values.js';
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
  const wrong = new GuessValues(guessable, context.declared.body, parameters, context.issued);
  let remaining = count;
  for (let round = 0; remaining > 0 && round < MAX_ROUND_COUNT; round++) {
    const bodies = wrong.take(remaining).map((value) => ({ ...parameters, [parameter]: value }));
    const texts = bodies.map((body) => JSON.stringify(body));
    const headers = await context.callerHeaders();
    const responses = await withInterleavedStatements([service], () => raceOfBodies([service], TOKEN, texts, headers));
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
