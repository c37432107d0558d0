import type { DeclaredGrant } from '../token/grant.js';
import type { GrantKit } from './kit.js';
import type { Rule } from './rule.js';
import { accountRules } from './rules/accounts.js';
import { answerRules } from './rules/answers.js';
import { bodyRules } from './rules/bodies.js';
import { callerRules } from './rules/callers.js';
import { clientRules } from './rules/clients.js';
import { fuzzRules } from './rules/fuzzing.js';
import { groupRules } from './rules/groups.js';
import { openApiRules } from './rules/openapi.js';
import { parameterRules } from './rules/parameters.js';
import { secretRules } from './rules/secrets.js';
import { settingsRules } from './rules/settings.js';
import { singleUseRules } from './rules/single-use.js';

const RULES = [
  ...[answerRules, parameterRules, bodyRules, clientRules, callerRules, groupRules, singleUseRules],
  ...[settingsRules, accountRules, openApiRules, secretRules, fuzzRules],
];

/** Every rule of the house that applies to a grant. */
export function rulesOf(declared: DeclaredGrant, kit: GrantKit): Rule[] {
  return RULES.flatMap((rulesOn) => rulesOn(declared, kit));
}
