import { randomInt } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Random } from '../../../../test/fuzz/random.js';
import { IS_NIGHTLY } from '../../../../test/nightly.js';
import { failuresOf, failuresOfRoute } from '../support/failures-of.js';
import { VOUCHER, type VoucherForm, voucher } from '../support/voucher.js';
import { VOUCHER_MISTAKES } from '../support/voucher-mistakes.js';

function randomVoucherForm(random: Random): VoucherForm {
  return {
    lifetime: random.pick([60, 300, 3_600]),
    endsWith: random.pick(['caller', 'sessions']),
    anyClient: random.chance(0.5),
  };
}

describe('a grant with a table of its own', () => {
  it.each(VOUCHER_MISTAKES)('%s (rule: %s)', async (mistake, rule, failure) => {
    const { grant, grantKit } = voucher(mistake);
    const [found = 'the rules passed'] = Object.values(await failuresOf(grant, grantKit, rule));
    expect(found).toMatch(failure);
  });

  it.each(Array.from({ length: IS_NIGHTLY ? 20 : 1 }, () => randomInt(1e9)))(
    'is not blamed if it is correct (seed %i)',
    async (seed) => {
      const { grant, grantKit, routeKit } = voucher(undefined, randomVoucherForm(new Random(seed)));
      expect(await failuresOf(grant, grantKit)).toEqual({});
      expect(await failuresOfRoute(VOUCHER, routeKit)).toEqual({});
    },
  );
});
