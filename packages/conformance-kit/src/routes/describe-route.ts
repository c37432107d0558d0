import { describeRules } from '../test-context.js';
import { applicableRouteRules } from './applicable-route-rules.js';
import type { RouteKit } from './route-kit.js';
import { RouteTestContext } from './route-test-context.js';

/**
 * Registers one vitest test for each rule of protocol §2 that applies to a route of an extension on the public port.
 * Routes of the management port are not covered. The rules for parameters test those of the body.
 *
 * @param name the method and the path as in the OpenAPI document: `POST /v2/customer/devices/{id}/approve`
 */
export function describeRoute(name: `${'GET' | 'POST' | 'DELETE'} /${string}`, kit: RouteKit): void {
  describeRules(`the route ${name}`, () => RouteTestContext.open(name, kit), applicableRouteRules(kit));
}
