import type { Configuration } from '../configuration/configuration.js';
import { isOnSurface, pathOn } from './surfaces.js';

const ADMIN_ROUTE = /^\/management(?=\/admin(\/|$))/;
const TRY_IT_ROUTE = /^\/public\/(docs|try)(\/|$)/;
const METRICS_ROUTE = /^\/management(?=\/metrics\/?$)/;

/**
 * The path at which the router gets a controller's route (protocol §1.5). `undefined` if no port serves the route:
 *
 * - a route without a surface could match the path of another controller through a parameter or wildcard
 * - without an admin token the admin API does not exist (protocol §9.1)
 * - without TRY_IT the public port has no pages that try the service (protocol §11)
 */
export function mountedRoute(
  route: string,
  { hasAdminTokens, ADMIN_PORT, METRICS_PORT, TRY_IT }: Configuration,
): string | undefined {
  if (!isOnSurface(route)) return undefined;
  if (TRY_IT_ROUTE.test(route) && !TRY_IT) return undefined;
  if (ADMIN_ROUTE.test(route)) {
    if (!hasAdminTokens) return undefined;
    if (ADMIN_PORT !== undefined) return route.replace(ADMIN_ROUTE, pathOn('admin', ''));
  }
  if (METRICS_PORT !== undefined) return route.replace(METRICS_ROUTE, pathOn('metrics', ''));
  return route;
}
