import type { GuessableParameter } from '../grant-kit.js';
import { withInterleavedStatements } from '../race.js';
import { fromSecureRandom, unguessable } from '../rules/proof-values.js';
import { assertNoSecretIn, similarTexts } from '../rules/secrets.js';
import { isPrivateText, secretParts, textsIn } from '../secret-search.js';
import { assertInNoTable, assertNoShortHash } from '../stored-cells.js';
import type { TestService } from '../test-service.js';
import { allParametersOf, parametersOf, withText } from './request-texts.js';
import type { RouteKit } from './route-kit.js';
import type { RouteRule, RouteTestContext } from './route-test-context.js';

/** The secrets of requests and responses. */
export function routeSecretRules({ callers, guessable }: RouteKit): RouteRule[] {
  if (guessable)
    return [NO_DISCLOSURE, limitsGuesses(guessable), storesNo(guessable), fromSecureRandom(guessable.parameter)];
  const isForAgents = callers.length > 0 && !callers.includes('customer');
  return guessable === false || isForAgents
    ? [NO_DISCLOSURE]
    : [NO_DISCLOSURE, unguessable('limit the guesses by `Limits`')];
}

const NO_DISCLOSURE: RouteRule = {
  title: 'discloses no secret of a request or response on stdout, in its errors, the log, the audit or the metrics',
  async check(context) {
    const [one, other] = [await context.valid(), await context.valid()];
    const secrets = new Set(secretParts(one.headers.authorization ?? ''));
    const sent = [one];
    for (const name of context.ownParameters) {
      const { [name]: value } = parametersOf(one);
      if (typeof value !== 'string' || value === parametersOf(other)[name]) continue;
      for (const wrong of similarTexts(value)) sent.unshift({ ...one, body: { ...parametersOf(one), [name]: wrong } });
    }
    for (const each of sent) {
      const known = new Set(context.secretsIn(parametersOf(other)));
      for (const secret of context.secretsIn(parametersOf(each))) if (!known.has(secret)) secrets.add(secret);
      const response = await context.send(each);
      if (response.status >= 400) continue;
      const common = new Set(textsIn((await context.send(other)).body));
      for (const text of textsIn(response.body).filter(isPrivateText)) if (!common.has(text)) secrets.add(text);
    }
    await assertNoSecretIn(context, secrets);
  },
};

function limitsGuesses(guessable: GuessableParameter): RouteRule {
  return {
    title: `refuses a right request after ${guessable.limit} wrong guesses, because the test declares \`guessable\``,
    showsMoreOnServer: true,
    check: (context) => context.withLimits((service) => guessUntilRefused(context, service, guessable)),
  };
}

function storesNo({ parameter }: GuessableParameter): RouteRule {
  return {
    title: 'stores no guessable value in plain text, and no hash of it alone',
    async check(context) {
      const { service } = context.environment;
      const sent = [await context.valid(), await context.valid()];
      const values = sent.map((each) => `${allParametersOf(each)[parameter]}`);
      await assertInNoTable(
        service,
        values.map((value) => [value]),
      );
      await assertNoShortHash(service, values);
    },
  };
}

async function guessUntilRefused(context: RouteTestContext, service: TestService, guessable: GuessableParameter) {
  const [{ parameter, limit }, { url }] = [guessable, service];
  const right = { ...(await context.valid()), url };
  const wrong = context.guessValues(guessable, right);
  const guess = (value: string) => context.send(withText(right, parameter, value));
  const responses = await withInterleavedStatements([service], () => Promise.all(wrong.take(limit).map(guess)));
  if (responses.some(({ status }) => status < 300)) throw new Error(`${parameter}: a wrong value succeeds`);
  const { status } = await context.send(right);
  if (status >= 300) return;
  const solution =
    'count each guess; if the route refuses these values before it looks them up, return others by `wrong`';
  throw new Error(`${parameter}: the right value succeeds after ${limit} wrong guesses; ${solution}`);
}
