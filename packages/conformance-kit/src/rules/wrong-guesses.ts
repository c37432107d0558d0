import type { DeclaredAttemptLimit } from 'customer-authorization-service/testing-host';
import type { GrantTestContext } from '../grant-test-context.js';
import { limitsOf } from '../guesses-in-window.js';
import { raceOfBodies } from '../race.js';
import { TOKEN } from '../test-environment.js';
import { wrongValue } from '../text-guesses.js';
import type { Parameters } from '../token-request.js';

/** Sends wrong values at the same time. */
export async function guess(
  context: GrantTestContext,
  url: string,
  parameters: Parameters,
  parameter: string,
  count: number,
): Promise<void> {
  const values = Array.from({ length: count }, (_, index) => wrongValue(`${parameters[parameter]}`, index));
  const bodies = values.map((value) => ({ ...parameters, [parameter]: value }));
  const texts = bodies.map((body) => JSON.stringify(body));
  const responses = await raceOfBodies([{ url }], TOKEN, texts, await context.callerHeaders());
  for (const [index, response] of responses.entries()) await context.assertValid(response, { body: bodies[index] });
  if (responses.some(({ status }) => status === 200)) throw new Error(`${parameter}: a wrong value gets a token`);
}

/** The limits of a grant and of its extension, as `COUNT/SECONDS`. */
export function attemptLimitsOf({ declared: { attempts = [] }, kit }: GrantTestContext): string[] {
  const declared = [attempts].flat() as DeclaredAttemptLimit[];
  return [...declared.map(({ limit }) => limit), ...limitsOf(kit)];
}
