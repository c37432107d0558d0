import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BROKEN_PROOFS } from '../support/broken-grants/broken-proofs.js';
import { passGrant } from '../support/broken-grants/pass.grant.js';
import { failuresOf } from '../support/failures-of.js';

const valid = () => ({ ticket: '123456' });

describe('the conformance kit detects a grant that', () => {
  beforeEach(() => void vi.spyOn(console, 'log').mockImplementation(() => undefined)); // One grant writes there.
  afterEach(() => vi.restoreAllMocks());

  it.each(BROKEN_PROOFS)('$description, by one rule alone', async ({ grant, rule, failure, ...kit }) => {
    const failures = await failuresOf(grant, { valid, ...kit });
    expect(Object.entries(failures)).toEqual([[expect.stringContaining(rule), expect.stringMatching(failure)]]);
  });

  it.each(['UTC', 'America/New_York', 'Asia/Kolkata'])('has no mistake, by no rule, with TZ=%s', async (zone) => {
    vi.stubEnv('TZ', zone);
    try {
      for (const isListed of [false, true]) {
        const { grant, ...kit } = passGrant(undefined, isListed);
        expect(await failuresOf(grant, kit)).toEqual({});
      }
    } finally {
      vi.unstubAllEnvs();
    }
  });
});
