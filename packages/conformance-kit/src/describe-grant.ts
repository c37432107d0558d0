import type { Type } from '@nestjs/common';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { applicableRules } from './applicable-rules.js';
import type { GrantKit } from './grant-kit.js';
import { GrantTestContext } from './grant-test-context.js';
import { grantMetadataOf } from './grant-under-test.js';

/** Generous, because fuzzing is slow and the machine may run other work at the same time. */
const RULE_TIMEOUT_MS = 120_000;

/**
 * Registers one vitest test for each service-wide rule that applies to what the grant's decorator declares. The tests
 * send HTTP requests to the real service, which runs on a database of its own.
 *
 * @throws Error if the class is not a grant
 */
export function describeGrant(grant: Type, kit: GrantKit): void {
  const declared = grantMetadataOf(grant);
  describe(`the grant ${declared.name}`, () => {
    let context: GrantTestContext;
    beforeAll(async () => {
      context = await GrantTestContext.open(grant, kit);
      await context.prepare();
    }, RULE_TIMEOUT_MS);
    afterAll(() => context?.close());
    for (const rule of applicableRules(declared, kit)) it(rule.title, () => context.check(rule), RULE_TIMEOUT_MS);
  });
}
