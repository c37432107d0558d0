import type { Type } from '@nestjs/common';
import { applicableRules } from './applicable-rules.js';
import type { GrantKit } from './grant-kit.js';
import { GrantTestContext } from './grant-test-context.js';
import { grantMetadataOf } from './grant-under-test.js';
import { describeRules } from './test-context.js';

/**
 * Registers one vitest test for each service-wide rule that applies to what the grant's decorator declares. The tests
 * send HTTP requests to the real service, which runs on a database of its own.
 *
 * @throws Error if the class is not a grant
 */
export function describeGrant(grant: Type, kit: GrantKit): void {
  const declared = grantMetadataOf(grant);
  const open = () => GrantTestContext.open(grant, kit);
  describeRules(`the grant ${declared.name}`, open, applicableRules(declared, kit));
}
