import { describe, expect, it } from 'vitest';
import { Random } from '../../../../test/fuzz/random.js';
import { IS_NIGHTLY } from '../../../../test/nightly.js';
import { onMariadb } from '../../src/test-database.js';
import { failuresOf, type TestedGrant, type TestedRoute } from '../support/failures-of.js';
import { generatedGrant, randomForm } from '../support/generated.grant.js';
import { notes, randomNotesForm } from '../support/notes.js';
import { phoneCode, randomPhoneForm } from '../support/phone-code.js';
import { seedsOf } from '../support/seeds.js';
import { randomPassForm, signedPass } from '../support/signed-pass.grant.js';

const NIGHTLY_COUNT = onMariadb ? 5 : 200;

const KINDS: Record<string, (random: Random) => (TestedGrant | TestedRoute)[]> = {
  'generated grant': (random) => [generatedGrant(randomForm(random), random)],
  pass: (random) => [signedPass(randomPassForm(random))],
  'code by phone': (random) => Object.values(phoneCode(randomPhoneForm(random))),
  notes: (random) => Object.values(notes(randomNotesForm(random))),
};

describe('the conformance kit blames no correct grant and no correct route', () => {
  it.each(seedsOf(IS_NIGHTLY ? NIGHTLY_COUNT : 3))('of the seed %i', async (seed) => {
    const random = new Random(seed);
    const kind = random.pick(Object.keys(KINDS));
    for (const tested of KINDS[kind]?.(random) ?? [])
      expect(await failuresOf(tested), `${kind} of FUZZ_SEED=${seed}`).toEqual({});
  });
});
