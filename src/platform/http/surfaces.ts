import { applyDecorators, Controller, SetMetadata, type Type } from '@nestjs/common';
import type { Configuration } from '../configuration/configuration.js';

/**
 * The ports of the service (protocol §1.5). A listener puts the name of its surface before the path of each request,
 * and the decorator of a controller before its routes, so a request only reaches controllers of its own port. A
 * controller without a surface stops the start (routes/route-checks.ts). Only this file knows the form of the prefix.
 */
export type Surface = 'public' | 'management';

/** A port. ADMIN_PORT and METRICS_PORT take routes over from the management port (`mountedRoute`). */
export type Port = Surface | 'admin' | 'metrics';

const ON_SURFACE = 'customer-authorization-service:on-surface';

const on = (surfaces: Surface[], path: string | string[]) => {
  const paths = surfaces.flatMap((surface) => [path].flat().map((each) => `${surface}/${each}`));
  return applyDecorators(Controller(paths), SetMetadata(ON_SURFACE, true));
};

export const isSurfaceController = (controller: Type): boolean => Reflect.hasOwnMetadata(ON_SURFACE, controller);

/** A controller that browsers, apps and services reach on PORT. */
export const PublicController = (path: string | string[]): ClassDecorator => on(['public'], path);

/** A controller that only the cluster reaches: on MANAGEMENT_PORT, or on ADMIN_PORT or METRICS_PORT for their routes. */
export const ManagementController = (path: string | string[]): ClassDecorator => on(['management'], path);

/** A controller that PORT and MANAGEMENT_PORT serve. `surfaceOf` says which of them received a request. */
export const BothPortsController = (path: string | string[]): ClassDecorator => on(['public', 'management'], path);

/** Splits the path of a route, or of a request that a listener has received; `undefined` without a surface. */
export function splitSurface(path: string): { surface: Surface; path: string } | undefined {
  const [, surface, below = ''] = /^\/(public|management)(?=\/|$)(.*)$/.exec(path) ?? [];
  return surface === undefined ? undefined : { surface: surface as Surface, path: below };
}

export const surfaceOf = (path: string): Surface => splitSurface(path)?.surface ?? 'management';

const CUSTOMER_ROUTE = /^\/public\/(v2\/)?customer(\/|$)/;

/** A customer route (protocol §2.1), by the path as a listener has received it. */
export const isCustomerRoute = (path: string): boolean => CUSTOMER_ROUTE.test(path);

export const pathOn = (port: Port, path: string): string => `/${port}${path}`;

/** Characters that a target must not contain (RFC 9112 §3.2). Express would accept them. */
const INVALID_IN_TARGET = /[#\xa0]/;
const NO_ROUTE = '/';

/** The request target that a listener hands to the router. An absolute one loses its authority (RFC 9112 §3.2.2). */
export function targetOn(port: Port, target: string): string {
  if (INVALID_IN_TARGET.test(target)) return NO_ROUTE;
  if (target.startsWith('/')) return pathOn(port, target);
  if (!/^https?:\/\//i.test(target) || !URL.canParse(target)) return NO_ROUTE;
  const { pathname, search } = new URL(target);
  return pathOn(port, pathname + search);
}

const PORT_PREFIX = /^\/(public|management|admin|metrics)(?=\/|$)/;

/** The pattern of a route as callers know it; `none` for a request that matched no route. */
export function routeOf(path: unknown): string {
  return typeof path === 'string' ? path.replace(PORT_PREFIX, '').replace(/\/$/, '') || '/' : 'none';
}

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
  if (!splitSurface(route)) return undefined;
  if (TRY_IT_ROUTE.test(route) && !TRY_IT) return undefined;
  if (ADMIN_ROUTE.test(route)) {
    if (!hasAdminTokens) return undefined;
    if (ADMIN_PORT !== undefined) return route.replace(ADMIN_ROUTE, pathOn('admin', ''));
  }
  if (METRICS_PORT !== undefined) return route.replace(METRICS_ROUTE, pathOn('metrics', ''));
  return route;
}
