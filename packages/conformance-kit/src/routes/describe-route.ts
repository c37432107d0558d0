import { afterAll, beforeAll, describe, it } from 'vitest';
import { applicableRouteRules } from './applicable-route-rules.js';
import type { RouteKit } from './route-kit.js';
import { RouteTestContext } from './route-test-context.js';

/** Generous, because the machine may run other work at the same time. */
const RULE_TIMEOUT_MS = 120_000;

/**
 * Registers one vitest test for each rule of protocol §2 that applies to a route of an extension on the public port.
 * Routes of the management port are not covered. The rules for parameters test those of the body.
 *
 * @param name the method and the path as in the OpenAPI document: `POST /v2/customer/devices/{id}/approve`
 */
export function describeRoute(name: `${'GET' | 'POST' | 'DELETE'} /${string}`, kit: RouteKit): void {
  describe(`the route ${name}`, () => {
    let context: RouteTestContext;
    beforeAll(async () => {
      context = await RouteTestContext.open(name, kit);
      await context.prepare();
    }, RULE_TIMEOUT_MS);
    afterAll(() => context?.close());
    for (const rule of applicableRouteRules(kit)) it(rule.title, () => context.check(rule), RULE_TIMEOUT_MS);
  });
}
