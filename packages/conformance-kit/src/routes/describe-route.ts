import { grantsOf } from '../kit-registry.js';
import { bearerRules } from '../rules/bearers.js';
import { bodyRules } from '../rules/bodies.js';
import { outageRules } from '../rules/outages.js';
import { describeRules } from '../test-context.js';
import { routeClientRules, UNLISTED_CLIENT } from './client-rules.js';
import { routeEndedCallerRules } from './ended-caller-rules.js';
import { routeHttpRules } from './http-rules.js';
import { routeLimitRules, routeResendRules } from './limit-rules.js';
import { routeMessageRules } from './message-rules.js';
import { routeOrganizationRules } from './organization-rules.js';
import type { RouteKit } from './route-kit.js';
import { type RouteRule, RouteTestContext, subjectOf } from './route-test-context.js';
import { routeSecretRules } from './secret-rules.js';

/**
 * Registers one vitest test for each rule of protocol §2 that applies to a route of an extension on the public port.
 * Routes of the management port are not covered. The rules for parameters test those of the body.
 *
 * @param name the method and the path as in the OpenAPI document: `POST /v2/customer/devices/{id}/approve`
 */
export function describeRoute(name: `${'GET' | 'POST' | 'DELETE'} /${string}`, kit: RouteKit): void {
  describeRules(subjectOf(name), () => RouteTestContext.open(name, kit), applicableRouteRules(kit));
}

export function applicableRouteRules(kit: RouteKit): RouteRule[] {
  return [
    ...[...routeHttpRules, ...bodyRules, ...routeClientRules],
    ...[
      ...bearerRules(kit.callers, kit.agentScope),
      ...routeOrganizationRules(kit),
      ...routeLimitRules(kit),
      ...routeSecretRules(kit),
    ],
    ...[...routeEndedCallerRules(kit), ...routeResendRules(kit), ...routeMessageRules(kit)],
    ...outageRules(kit.replace),
    ...(grantsOf(kit).length > 0 && !kit.anyClient ? [UNLISTED_CLIENT] : []),
  ];
}
