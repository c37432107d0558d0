import { randomInt } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { IS_NIGHTLY } from '../../../../test/nightly.js';
import { Random } from '../../src/fuzz/random.js';
import { fuzzOptions } from '../../src/rules/fuzzing.js';
import { randomVoucherForm, voucherGrant } from '../support/broken-grants/voucher.grant.js';
import { MAIL, mailRoute, randomMailForm } from '../support/broken-routes/mail.route.js';
import { failuresOf, failuresOfRoute } from '../support/failures-of.js';

const { FUZZ_SEED } = process.env;
const newSeed = () => Number(FUZZ_SEED || randomInt(1e9));

/** West of Greenwich, a time that is read without its zone is too late, so a proof would be valid for too long. */
const ZONES = IS_NIGHTLY ? ['UTC', 'America/New_York', 'Asia/Kolkata'] : ['America/New_York'];

describe.each(ZONES)('the conformance kit with TZ=%s', (zone) => {
  beforeEach(() => void vi.stubEnv('TZ', zone));
  afterEach(() => void vi.unstubAllEnvs());

  it('finds no mistake in a correct grant with random codes, limits and lifetimes', async () => {
    const seed = newSeed();
    const form = randomVoucherForm(new Random(seed));
    fuzzOptions.seed = seed;
    const { grant, ...kit } = voucherGrant(form);
    expect(await failuresOf(grant, kit), `FUZZ_SEED=${seed} ${JSON.stringify(form)}`).toEqual({});
  });

  it('finds no mistake in a correct route that sends messages, with random addresses and counts', async () => {
    const seed = newSeed();
    const form = randomMailForm(new Random(seed));
    const failures = await failuresOfRoute(MAIL, mailRoute(undefined, form));
    expect(failures, `FUZZ_SEED=${seed} ${JSON.stringify(form)}`).toEqual({});
  });
});
