import { describe, expect, it } from 'vitest';
import { Random } from '../../../../test/fuzz/random.js';
import { IS_NIGHTLY } from '../../../../test/nightly.js';
import { failuresOf } from '../support/failures-of.js';
import { seedsOf } from '../support/seeds.js';
import { randomVoucherForm, voucher } from '../support/voucher.js';

// in a file of its own, because the purge of every service of the process then expects the table of the vouchers
describe('the conformance kit blames no correct grant and no correct route with a table that expires', () => {
  it.each(seedsOf(IS_NIGHTLY ? 20 : 1))('of the seed %i', async (seed) => {
    for (const tested of Object.values(voucher(randomVoucherForm(new Random(seed)))))
      expect(await failuresOf(tested)).toEqual({});
  });
});
