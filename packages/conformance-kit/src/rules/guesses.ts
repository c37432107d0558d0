import type { GrantMetadata } from '@customer-authorization/service/testing-host';
import type { GrantRule, GrantSubject } from '../grant-subject.js';
import { estimatedBits, wrongValues } from '../guess-values.js';
import type { TestResponse } from '../http-client.js';
import { raceOfBodies, withInterleavedStatements } from '../race.js';
import { differingTexts, parametersOf, type SentRequest, withParameter } from '../request.js';
import { isJwt } from './forgeries.js';

/** A coarse estimate is enough to distinguish codes for humans from random ids. RFC 6749 §10.10 requires 128 bits. */
const MIN_UNGUESSABLE_BITS = 100;
const DEFAULT_GUESS_COUNT = 5;
/** A grant with a higher limit has few guesses for its size. */
const MAX_TESTED_GUESSES = 100;
/** A window of `attempts` that is much shorter than the lifetime admits guesses again and again. */
const MAX_WINDOW_RATIO = 10;
const LIMIT = 'create it with randomSecret(), redeem it by `OneTimeCodes` with a recipient, or declare `attempts`';

/** No caller guesses a proof. With `agentScope` the bearer token is a proof that no caller guesses. */
export function guessRules({ agentScope, attempts, guesses, lifetime }: GrantMetadata): GrantRule[] {
  if (agentScope !== undefined) return [];
  const limits = attempts === undefined ? [] : [attempts].flat().map(({ limit }) => limit.split('/').map(Number));
  const counts = [...limits.map(([count = 0]) => count), ...(guesses === undefined ? [] : [guesses])];
  const limit = counts.length > 0 ? Math.min(...counts) : DEFAULT_GUESS_COUNT;
  const isPerProcess = guesses === undefined && limits.length > 0;
  return [
    {
      title: `refuses a short proof after ${limit} wrong guesses`,
      async check(subject) {
        const names = await shortParameters(subject);
        if (names.length === 0 || limit > MAX_TESTED_GUESSES) return;
        if (guesses === undefined && limits.some(([, seconds = 1]) => (lifetime ?? 0) / seconds > MAX_WINDOW_RATIO))
          throw new Error('`attempts` has a window that is much shorter than `lifetime`; choose a longer window');
        // only one of several short parameters is the code; the others may name its recipient, or prove nothing
        const results: Record<string, GuessResult> = {};
        for (const name of names) results[name] = await resultOfGuesses(subject, name, limit, isPerProcess);
        const unlimited = names.filter((name) => results[name] === 'not limited');
        const isLimited = Object.values(results).includes('limited');
        if (unlimited.length > 0 && !isLimited)
          throw new Error(`${unlimited}: the right value gets a token after ${limit} wrong ones; ${LIMIT}`);
      },
    },
  ];
}

/** The own parameters that differ between proofs and are short. A signed text next to them is the proof. */
async function shortParameters(subject: GrantSubject): Promise<string[]> {
  const [one, other] = [parametersOf(await subject.create()), parametersOf(await subject.create())];
  const own = differingTexts(one, other).filter((name) => subject.ownParameters.includes(name));
  if (own.some((name) => isJwt(one[name])) || (subject.kit.forged && !(await subject.proof()).isOfRoute)) return [];
  const { isPublicId } = subject.environment;
  const bitsOf = (name: string) => Math.max(...[one, other].map((each) => estimatedBits(`${each[name]}`)));
  return own.filter((name) => !isPublicId(`${one[name]}`) && bitsOf(name) < MIN_UNGUESSABLE_BITS);
}

type GuessResult = 'limited' | 'not limited' | 'proves nothing';

/** Sends the declared number of wrong values at the same time, and then the right one. */
function resultOfGuesses(
  subject: GrantSubject,
  name: string,
  limit: number,
  isPerProcess: boolean,
): Promise<GuessResult> {
  return subject.withLimits(async (service) => {
    const right = { ...(await subject.create()), url: service.url };
    const values = wrongValues(subject.declared.body, right.body ?? {}, name, limit);
    const responses = await sentTogether(
      subject,
      values.map((value) => withParameter(right, name, value)),
    );
    if (responses.some(({ status }) => status === 200)) return 'proves nothing';
    if (values.length < limit) return 'limited'; // there is nothing left to guess
    // another process must know of the guesses, unless `attempts` counts them
    const later = isPerProcess ? right : { ...right, url: subject.service.url };
    return (await subject.send(later)).status === 200 ? 'not limited' : 'limited';
  });
}

async function sentTogether(subject: GrantSubject, sent: SentRequest[]): Promise<TestResponse[]> {
  const [first] = sent;
  if (!first) return [];
  const services = [{ url: first.url ?? subject.service.url }];
  const texts = sent.map(({ body }) => JSON.stringify(body));
  const responses = await withInterleavedStatements([subject.service], () =>
    raceOfBodies(services, first.path, texts, first.headers),
  );
  for (const [index, response] of responses.entries()) subject.assertResponse(sent[index] as SentRequest, response);
  return responses;
}
