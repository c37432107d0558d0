import type { Type } from '@nestjs/common';
import { applicableRules } from '../../src/applicable-rules.js';
import { fuzzOptions } from '../../src/fuzz/fuzz-options.js';
import type { GrantKit } from '../../src/grant-kit.js';
import { GrantTestContext } from '../../src/grant-test-context.js';
import { grantMetadataOf } from '../../src/grant-under-test.js';

/** Returns the failures of all rules that a grant violates, by their titles. Fuzzing is short, because it finds none of these mistakes. */
export async function failuresOf(grant: Type, kit: GrantKit): Promise<Map<string, string>> {
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
