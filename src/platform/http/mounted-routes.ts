import type { Configuration } from '../configuration/configuration.js';
import { isOnSurface, pathOn } from './surfaces.js';

const ADMIN_ROUTE = /^\/management(?=\/admin(\/|$))/;
const METRICS_ROUTE = /^\/management(?=\/metrics\/?$)/;

/**
 * The path at which the router gets a controller's route (protocol §1.5). `undefined` if no port serves the route:
 *
 * - a route without a surface could match the path of another controller through a parameter or wildcard
 * - without an admin token the admin API does not exist (protocol §9.1)
 */
export function mountedRoute(
  route: string,
  { hasAdminTokens, ADMIN_PORT, METRICS_PORT }: Configuration,
): string | undefined {
  if (!isOnSurface(route)) return undefined;
  if (ADMIN_ROUTE.test(route)) {
    if (!hasAdminTokens) return undefined;
    if (ADMIN_PORT !== undefined) return route.replace(ADMIN_ROUTE, pathOn('admin', ''));
  }
  if (METRICS_PORT !== undefined) return route.replace(METRICS_ROUTE, pathOn('metrics', ''));
  return route;
}
