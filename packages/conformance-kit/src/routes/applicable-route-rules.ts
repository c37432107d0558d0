import { bearerRules } from '../rules/bearers.js';
import { bodyRules } from '../rules/bodies.js';
import { routeClientRules, UNLISTED_CLIENT } from './client-rules.js';
import { routeEndedCallerRules } from './ended-caller-rules.js';
import { routeHttpRules } from './http-rules.js';
import { routeLimitRules } from './limit-rules.js';
import { routeOrganizationRules } from './organization-rules.js';
import { routeResendRules } from './resend-rules.js';
import type { RouteKit } from './route-kit.js';
import { grantsOf } from './route-registry.js';
import type { RouteRule } from './route-test-context.js';
import { routeSecretRules } from './secret-rules.js';

/** Every rule that applies to a route. */
export function applicableRouteRules(kit: RouteKit): RouteRule[] {
  return [
    ...[...routeHttpRules, ...bodyRules, ...routeClientRules],
    ...[
      ...bearerRules(kit.callers, kit.agentScope),
      ...routeOrganizationRules(kit),
      ...routeLimitRules(kit),
      ...routeSecretRules(kit),
    ],
    ...[...routeEndedCallerRules(kit), ...routeResendRules(kit)],
    ...(grantsOf(kit).length > 0 && !kit.anyClient ? [UNLISTED_CLIENT] : []),
  ];
}
