import type { GrantMetadata } from '@customer-authorization/service/testing-host';
import type { GrantRule } from '../grant-subject.js';
import type { GrantKit, RouteKit } from '../kit.js';
import type { RouteRule } from '../route-subject.js';
import { bindingRules } from './binding.js';
import { callerRules } from './callers.js';
import { customerDataRules } from './customer-data.js';
import { endingRules } from './endings.js';
import { forgeryRules } from './forgeries.js';
import { guessRules } from './guesses.js';
import { listRules } from './lists.js';
import { messageRules } from './messages.js';
import { organizationRules } from './organizations.js';
import { OUTAGE_RULE } from './outages.js';
import { parameterRules } from './parameters.js';
import { pendingRules } from './pending.js';
import { providerRules } from './providers.js';
import { sameCustomerRules } from './same-customer.js';
import { secretRules } from './secrets.js';
import { useRules } from './uses.js';

/** The rules that apply to what the decorator of a grant declares. */
export function grantRules(declared: GrantMetadata, kit: GrantKit): GrantRule[] {
  return [
    ...[OUTAGE_RULE, ...parameterRules, ...secretRules, ...customerDataRules],
    ...[...useRules(declared), ...bindingRules(declared, kit.anyOrganization), ...endingRules(declared)],
    ...[...guessRules(declared), ...forgeryRules(declared, kit)],
    ...[...sameCustomerRules(kit), ...pendingRules(declared, kit), ...providerRules(kit)],
  ];
}

export function routeRules(name: string, kit: RouteKit): RouteRule[] {
  return [
    ...[...parameterRules, ...secretRules, ...customerDataRules],
    ...[...callerRules(kit), ...organizationRules(kit), ...messageRules(kit)],
    ...[...listRules(name, kit), ...providerRules(kit)],
  ];
}
