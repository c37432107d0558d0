import type { Type } from '@nestjs/common';
import type { GrantMetadata } from 'customer-authorization-service/testing-host';
import type { GrantKit } from './grant-kit.js';
import { GrantTestContext, grantMetadataOf, type Rule, subjectOf } from './grant-test-context.js';
import { callerRules } from './rules/callers.js';
import { clientRules } from './rules/clients.js';
import { customerErasureRules, endingRules } from './rules/endings.js';
import { fuzzRules } from './rules/fuzzing.js';
import { groupRules } from './rules/groups.js';
import { guessRules } from './rules/guesses.js';
import { outageRules } from './rules/outages.js';
import { parameterRules } from './rules/parameters.js';
import { pendingRules } from './rules/pending.js';
import { proofBindingRules } from './rules/proof-binding.js';
import { responseRules } from './rules/responses.js';
import { sameCustomerRules } from './rules/same-customer.js';
import { proofOutputRules, secretRules } from './rules/secrets.js';
import { settingsRules } from './rules/settings.js';
import { singleUseRules } from './rules/single-use.js';
import { storageRules } from './rules/storage.js';
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
  describeRules(subjectOf(declared), open, applicableRules(declared, kit));
}

const RULES = [
  ...[responseRules, parameterRules, clientRules, callerRules, groupRules, singleUseRules],
  ...[settingsRules, secretRules, fuzzRules],
  ...[proofOutputRules, storageRules, proofBindingRules, guessRules, customerErasureRules, endingRules],
  ...[pendingRules, sameCustomerRules],
];

export function applicableRules(declared: GrantMetadata, kit: GrantKit): Rule[] {
  return [...RULES.flatMap((rulesOn) => rulesOn(declared, kit)), ...outageRules(kit.replace)];
}
