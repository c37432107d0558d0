import type { RouteTestContext } from './route-test-context.js';

/** A rule for routes, with a check that tests a route for it. */
export interface RouteRule {
  /** A sentence whose subject is the route. */
  title: string;
  /** @throws Error if the route breaks the rule */
  check(context: RouteTestContext): Promise<void>;
}
