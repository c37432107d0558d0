import type { Type } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { applicableRules } from '../../src/applicable-rules.js';
import { fuzzOptions } from '../../src/fuzz/fuzz-options.js';
import type { GrantKit } from '../../src/grant-kit.js';
import { GrantTestContext } from '../../src/grant-test-context.js';
import { grantMetadataOf } from '../../src/grant-under-test.js';
import { BROKEN_PROOFS } from '../support/broken-grants/broken-proofs.js';
import { passGrant } from '../support/broken-grants/pass.grant.js';

const valid = () => ({ ticket: '123456' });

/** Returns the failures of all rules that a grant violates, by their titles. Fuzzing is short, because it finds none of these mistakes. */
async function failuresOf(grant: Type, kit: GrantKit): Promise<Map<string, string>> {
  const context = await GrantTestContext.open(grant, kit);
  const failures = new Map<string, string>();
  const { requests } = fuzzOptions;
  fuzzOptions.requests = 50;
  try {
    for (const rule of applicableRules(grantMetadataOf(grant), kit))
      await context.check(rule).catch((error: Error) => failures.set(rule.title, error.message));
  } finally {
    fuzzOptions.requests = requests;
    await context.close();
  }
  return failures;
}

describe('the conformance kit detects a grant that', () => {
  beforeEach(() => void vi.spyOn(console, 'log').mockImplementation(() => undefined)); // One grant writes there.
  afterEach(() => vi.restoreAllMocks());

  it.each(BROKEN_PROOFS)('$description, by one rule alone', async ({ grant, rule, failure, ...kit }) => {
    const failures = await failuresOf(grant, { valid, ...kit });
    expect([...failures.keys()], JSON.stringify([...failures])).toEqual([rule]);
    expect(failures.get(rule)).toMatch(failure);
  });

  it.each(['UTC', 'America/New_York', 'Asia/Kolkata'])('has no mistake, by no rule, with TZ=%s', async (zone) => {
    vi.stubEnv('TZ', zone);
    try {
      const { grant, ...kit } = passGrant();
      expect(await failuresOf(grant, kit)).toEqual(new Map());
    } finally {
      vi.unstubAllEnvs();
    }
  });
});
