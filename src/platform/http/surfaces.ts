import { Controller, type Type } from '@nestjs/common';
import { HOST_METADATA } from '@nestjs/common/constants.js';
import type { Configuration } from '../configuration/configuration.js';

/**
 * The surfaces of the service (protocol §1.5). A controller declares its surfaces as the `host` of Nest's `Controller`.
 * Nest compares them with the surface of the request, which `ServiceHttpAdapter` names, and skips the routes of other
 * surfaces. A controller without a surface stops the start (http/routes/route-checks.ts).
 */
export type Surface = 'public' | 'management';

/** A port. ADMIN_PORT takes `/admin/` over from the management port. */
export type Port = Surface | 'admin';

/** A controller that browsers, apps and services reach on PORT. */
export const PublicController = (path: string | string[]): ClassDecorator => Controller({ path, host: 'public' });

/** A controller that only the cluster reaches: on MANAGEMENT_PORT, or on ADMIN_PORT below `/admin/`. */
export const ManagementController = (path: string | string[]): ClassDecorator =>
  Controller({ path, host: 'management' });

/** A controller that PORT and MANAGEMENT_PORT serve. */
export const BothPortsController = (path: string | string[]): ClassDecorator =>
  Controller({ path, host: ['public', 'management'] });

/** The surfaces that a controller declares. The host of another controller is no surface. */
export function surfacesOf(controller: Type): Surface[] {
  const hosts = [Reflect.getMetadata(HOST_METADATA, controller) ?? []].flat();
  return hosts.filter((host) => host === 'public' || host === 'management');
}

const ADMIN_ROUTE = /^\/admin(\/|$)/;
const TRY_IT_ROUTE = /^\/(docs|try)(\/|$)/;

/**
 * The surface whose routes a port serves at this path (protocol §1.5). `undefined` if the port serves nothing there:
 *
 * - without an admin token the admin API does not exist (protocol §9.1)
 * - without TRY_IT the public port has no pages that try the service (protocol §11)
 */
export function servedSurface(port: Port, path: string, configuration: Configuration): Surface | undefined {
  if (port === 'public') return configuration.TRY_IT || !TRY_IT_ROUTE.test(path) ? 'public' : undefined;
  const isAdmin = ADMIN_ROUTE.test(path);
  if (isAdmin && !configuration.hasAdminTokens) return undefined;
  const serving = isAdmin && configuration.ADMIN_PORT !== undefined ? 'admin' : 'management';
  return port === serving ? 'management' : undefined;
}

const CUSTOMER_ROUTE = /^\/(v2\/)?customer(\/|$)/;

/** A customer route (protocol §2.1). */
export const isCustomerRoute = ({ surface, path }: { surface: Port; path: string }): boolean =>
  surface === 'public' && CUSTOMER_ROUTE.test(path);

/** Characters that a target must not contain (RFC 9112 §3.2). Express would accept them. */
const INVALID_IN_TARGET = /[#\xa0]/;

/** Whether a request target can name a route. An absolute one may have any authority (RFC 9112 §3.2.2). */
export function isValidTarget(target: string): boolean {
  if (INVALID_IN_TARGET.test(target)) return false;
  return target.startsWith('/') || (/^https?:\/\//i.test(target) && URL.canParse(target));
}

/** The pattern of a route as callers know it; `none` for a request that matched no route. */
export function routeOf(path: unknown): string {
  return typeof path === 'string' ? path.replace(/\/$/, '') || '/' : 'none';
}
