import { randomInt } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Random } from '../../../../test/fuzz/random.js';
import { IS_NIGHTLY } from '../../../../test/nightly.js';
import { onMariadb } from '../../src/test-database.js';
import { failuresOf, failuresOfRoute } from '../support/failures-of.js';
import { generatedGrant, randomForm } from '../support/generated.grant.js';
import { NOTES, notes, randomNotesForm } from '../support/notes.js';
import { PHONE, phoneCode, randomPhoneForm } from '../support/phone-code.js';
import { randomPassForm, signedPass } from '../support/signed-pass.grant.js';

const { FUZZ_SEED } = process.env;
const NIGHTLY_COUNT = onMariadb ? 5 : 200;
const seeds = FUZZ_SEED
  ? [Number(FUZZ_SEED)]
  : Array.from({ length: IS_NIGHTLY ? NIGHTLY_COUNT : 5 }, () => randomInt(1e9));

const KINDS: Record<string, (random: Random) => Promise<object>> = {
  generated: (random) => {
    const { grant, ...kit } = generatedGrant(randomForm(random), random);
    return failuresOf(grant, kit);
  },
  pass: (random) => {
    const { grant, ...kit } = signedPass(undefined, randomPassForm(random));
    return failuresOf(grant, kit);
  },
  phone: (random) => {
    const { grant, grantKit } = phoneCode(undefined, randomPhoneForm(random));
    return failuresOf(grant, grantKit);
  },
  'route of a phone': (random) => failuresOfRoute(PHONE, phoneCode(undefined, randomPhoneForm(random)).routeKit),
  'routes of notes': async (random) => {
    const kits = notes(undefined, randomNotesForm(random));
    return {
      ...(await failuresOfRoute(`POST ${NOTES}`, kits.add)),
      ...(await failuresOfRoute(`GET ${NOTES}`, kits.list)),
      ...(await failuresOfRoute(`GET ${NOTES}/{id}`, kits.get)),
      ...(await failuresOfRoute(`DELETE ${NOTES}/{id}`, kits.delete)),
      ...(await failuresOfRoute(`POST ${NOTES}/of/{customer}`, kits.ofCustomer)),
    };
  },
};

/** `FUZZ_SEED=… ` repeats a failure. */
describe('the conformance kit blames no correct grant and no correct route', () => {
  it.each(seeds)('of the seed %i', async (seed) => {
    const random = new Random(seed);
    const kind = random.pick(Object.keys(KINDS));
    expect(await KINDS[kind]?.(random), `${kind} of FUZZ_SEED=${seed}`).toEqual({});
  });
});
