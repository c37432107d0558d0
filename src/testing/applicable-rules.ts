import type { GrantMetadata } from '../token/grant.js';
import type { GrantKit } from './grant-kit.js';
import type { Rule } from './rule.js';
import { auditAndMetricsRules } from './rules/audit-and-metrics.js';
import { bodyRules } from './rules/bodies.js';
import { callerRules } from './rules/callers.js';
import { clientRules } from './rules/clients.js';
import { fuzzRules } from './rules/fuzzing.js';
import { groupRules } from './rules/groups.js';
import { openApiRules } from './rules/openapi.js';
import { parameterRules } from './rules/parameters.js';
import { responseRules } from './rules/responses.js';
import { secretRules } from './rules/secrets.js';
import { settingsRules } from './rules/settings.js';
import { singleUseRules } from './rules/single-use.js';

const RULES = [
  ...[responseRules, parameterRules, bodyRules, clientRules, callerRules, groupRules, singleUseRules],
  ...[settingsRules, auditAndMetricsRules, openApiRules, secretRules, fuzzRules],
];

/** Every service-wide rule that applies to a grant. */
export function applicableRules(declared: GrantMetadata, kit: GrantKit): Rule[] {
  return RULES.flatMap((rulesOn) => rulesOn(declared, kit));
}
