import { about } from '../cases.js';
import { estimatedBits } from '../guess-values.js';
import { SharedPatch, thenRestore } from '../shared-patch.js';
import type { RuleFor, TestContext } from '../test-context.js';
import type { Parameters } from '../token-request.js';

/** A coarse estimate is enough to distinguish codes for humans from random ids. RFC 6749 §10.10 requires 128 bits. */
const MIN_UNGUESSABLE_BITS = 100;
/** Short values may be equal by chance, but not so many in a row. */
const SAMPLE_COUNT = 10;

/** The own parameters that are texts and differ between two requests. These parameters are the proof. */
function provingParameters({ ownParameters }: TestContext, one: Parameters, other: Parameters): string[] {
  const isText = (name: string) => typeof one[name] === 'string' && typeof other[name] === 'string';
  return ownParameters.filter((name) => isText(name) && one[name] !== other[name]);
}

/**
 * Checks each parameter alone: a long handle does not protect a short code, because the caller created the handle.
 *
 * @param solution what the author of a short parameter does
 */
export function unguessable(solution: string): RuleFor<TestContext> {
  return {
    title: 'has no parameter that is short enough to guess, because the test does not declare `guessable`',
    async check(context) {
      // several requests, because a random text may have no capital letter by chance
      const samples = [await context.parameters(), await context.parameters()] as const;
      const { isPublicId } = context.environment;
      const names = provingParameters(context, ...samples).filter((name) => !isPublicId(`${samples[0][name]}`));
      const bitsOf = (name: string) => Math.max(...samples.map((each) => estimatedBits(`${each[name]}`)));
      const short = names.filter((name) => bitsOf(name) < MIN_UNGUESSABLE_BITS);
      if (short.length === 0) return;
      const bits = Math.round(Math.max(...short.map(bitsOf)));
      const declaration = `declare guessable: { parameter: '${short.at(-1)}', limit: … } in the test, or guessable: false`;
      throw new Error(`${short}: at most ${bits} bits; ${solution}; then ${declaration} if guessing is harmless`);
    },
  };
}

/** @param parameter the only parameter that may repeat; if omitted, all that differ between two requests */
export function fromSecureRandom(parameter?: string): RuleFor<TestContext> {
  return {
    title: 'does not create proofs with Math.random()',
    async check(context) {
      const proving = async () => provingParameters(context, await context.parameters(), await context.parameters());
      const names = parameter === undefined ? await proving() : [parameter];
      const [one, other] = [await sample(context), await sample(context)];
      const valuesOf = (all: Parameters[], name: string) => all.map((each) => each[name]);
      const varies = (name: string) => new Set(valuesOf(one, name)).size > 1;
      const same = names.filter((name) => varies(name) && `${valuesOf(one, name)}` === `${valuesOf(other, name)}`);
      if (same.length === 0) return;
      throw new Error(
        `${same}: repeats when Math.random() repeats its numbers; create it with randomSecret() or randomInt()`,
      );
    },
  };
}

/** Requests that are created while `Math.random()` returns the same numbers as in the previous call. */
async function sample(context: TestContext): Promise<Parameters[]> {
  let state = 1;
  const patch = new SharedPatch(Math, 'random', () => () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  });
  return thenRestore([patch.acquire()], async () => {
    const all: Parameters[] = [];
    while (all.length < SAMPLE_COUNT)
      all.push(await about('while Math.random() repeats its numbers', () => context.parameters()));
    return all;
  });
}
