import type { GrantMetadata } from 'customer-authorization-service/testing-host';
import type { GrantKit } from './grant-kit.js';
import type { Rule } from './rule.js';
import { auditAndMetricsRules } from './rules/audit-and-metrics.js';
import { callerRules } from './rules/callers.js';
import { clientRules } from './rules/clients.js';
import { customerErasureRules } from './rules/customer-erasure.js';
import { endingRules } from './rules/endings.js';
import { fuzzRules } from './rules/fuzzing.js';
import { groupRules } from './rules/groups.js';
import { guessRules } from './rules/guesses.js';
import { openApiRules } from './rules/openapi.js';
import { parameterRules } from './rules/parameters.js';
import { pendingRules } from './rules/pending.js';
import { proofBindingRules } from './rules/proof-binding.js';
import { proofOutputRules } from './rules/proof-output.js';
import { responseRules } from './rules/responses.js';
import { secretRules } from './rules/secrets.js';
import { settingsRules } from './rules/settings.js';
import { singleUseRules } from './rules/single-use.js';
import { storageRules } from './rules/storage.js';

const RULES = [
  ...[responseRules, parameterRules, clientRules, callerRules, groupRules, singleUseRules],
  ...[settingsRules, auditAndMetricsRules, openApiRules, secretRules, fuzzRules],
  ...[proofOutputRules, storageRules, proofBindingRules, guessRules, customerErasureRules, endingRules],
  pendingRules,
];

/** Every service-wide rule that applies to a grant. */
export function applicableRules(declared: GrantMetadata, kit: GrantKit): Rule[] {
  return RULES.flatMap((rulesOn) => rulesOn(declared, kit));
}
